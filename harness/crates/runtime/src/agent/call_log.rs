//! Durable record of the tool calls of a run, from which a resumed run reads which calls it must
//! not repeat.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::run_queue::{QueueReceiver, QueueSender, run_queue};
use super::tool_ledger::{CallEntry, CallProgress, ToolLedger};
use crate::definition::StoreError;
use crate::definition::read_retry::{READ_TIMEOUT, RETRY};
use deerflow_core::ids::RunId;

/// Log of a run's tool calls, which sends entries to the store. The default log discards them, for
/// agents that run without a runtime.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Option<CallWriter>);

#[derive(Debug, Clone)]
struct CallWriter {
    run: RunId,
    /// Ledger of earlier attempts; `None` for the first attempt.
    former: Option<Arc<dyn ToolLedger>>,
    entries: QueueSender<PendingCallEntry>,
}

/// An entry and the channel that acknowledges it once it is durable. A dropped sender means that
/// the entry could not be written.
#[derive(Debug)]
pub struct PendingCallEntry {
    pub entry: CallEntry,
    pub written: oneshot::Sender<()>,
}

impl CallLog {
    /// Creates the log of `run` and the receiver of its entries.
    pub fn of(
        run: RunId,
        former: Option<Arc<dyn ToolLedger>>,
    ) -> (Self, QueueReceiver<PendingCallEntry>) {
        let (entries, written) = run_queue();
        (
            Self(Some(CallWriter {
                run,
                former,
                entries,
            })),
            written,
        )
    }

    /// Returns the progress that an earlier attempt recorded for the call. Retries during a store
    /// outage of at most 45 s.
    pub async fn former(&self, key: &str) -> Result<Option<CallProgress>, StoreError> {
        let Some(CallWriter {
            run,
            former: Some(ledger),
            ..
        }) = &self.0
        else {
            return Ok(None);
        };
        let began = Instant::now();
        loop {
            match ledger.progress(run, key).await {
                Err(StoreError::Unavailable(error)) if began.elapsed() < READ_TIMEOUT => {
                    tracing::warn!(%run, error, "cannot read the calls of an earlier attempt yet");
                }
                result => return result,
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Writes an entry, and returns once it is durable together with all steps that were emitted
    /// before it.
    pub async fn write(&self, key: &str, progress: CallProgress) -> Result<(), StoreError> {
        let Some(writer) = &self.0 else { return Ok(()) };
        let (written, answer) = oneshot::channel();
        writer.entries.send(PendingCallEntry {
            entry: CallEntry {
                key: key.to_owned(),
                progress,
            },
            written,
        });
        let lost = |_| StoreError::Unavailable("the call could not be recorded".to_owned());
        answer.await.map_err(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn write_fails_if_the_run_has_ended() {
        let run = RunId::parse("run").unwrap();
        let (log, entries) = CallLog::of(run, None);
        let write = || Box::pin(log.write("key", CallProgress::Started));
        let mut queued = write();
        assert!(futures_util::poll!(&mut queued).is_pending());
        drop(entries);
        for write in [queued, write()] {
            assert!(matches!(write.await, Err(StoreError::Unavailable(_))));
        }
    }
}
