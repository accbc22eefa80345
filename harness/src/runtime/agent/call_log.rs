//! Where a driver writes down the calls it makes, so that an interrupted run does nothing twice.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::ids::RunId;
use crate::runtime::runs::store::{CallEntry, CallProgress, StoreError, ToolLedger};

/// The run's calls on their way to the store. By default nobody keeps them, as where an agent runs without a runtime.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Option<Kept>);

#[derive(Debug, Clone)]
struct Kept {
    run: RunId,
    /// What former attempts wrote; the first has none to ask.
    former: Option<Arc<dyn ToolLedger>>,
    lines: mpsc::UnboundedSender<CallLine>,
}

/// One entry, and who waits until it is durable. Dropped unanswered, it could not be written.
#[derive(Debug)]
pub(crate) struct CallLine {
    pub(crate) entry: CallEntry,
    pub(crate) written: oneshot::Sender<()>,
}

impl CallLog {
    /// A log of `run`, and the end that its lines come out of.
    pub(crate) fn of(
        run: RunId,
        former: Option<Arc<dyn ToolLedger>>,
    ) -> (Self, mpsc::UnboundedReceiver<CallLine>) {
        let (lines, written) = mpsc::unbounded_channel();
        (Self(Some(Kept { run, former, lines })), written)
    }

    /// How far a former attempt came with the call.
    pub(crate) async fn former(&self, key: &str) -> Result<Option<CallProgress>, StoreError> {
        match &self.0 {
            Some(Kept {
                run,
                former: Some(ledger),
                ..
            }) => ledger.progress(run, key).await,
            _ => Ok(None),
        }
    }

    /// Returns once the entry is durable, together with every step that was told before.
    pub(crate) async fn write(&self, key: &str, progress: CallProgress) -> Result<(), StoreError> {
        let Some(kept) = &self.0 else { return Ok(()) };
        let (written, answer) = oneshot::channel();
        let lost = || StoreError::Unavailable("the call could not be written down".to_owned());
        kept.lines
            .send(CallLine {
                entry: CallEntry {
                    key: key.to_owned(),
                    progress,
                },
                written,
            })
            .map_err(|_| lost())?;
        answer.await.map_err(|_| lost())
    }
}
