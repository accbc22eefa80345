//! Ends of runs on which nobody works: once one is durable, those who view the run or wait for it hear of it.

use std::sync::Arc;
use std::time::Duration;

use super::bell::Ring;
use super::live::{LiveRun, RunOutcome};
use super::parts::RuntimeParts;
use super::record::RunRecord;
use super::recovery::{self, Ending};
use super::registry::RunRegistry;
use super::settling::Settling;
use crate::ids::RunId;
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{BridgeError, StreamKey, TerminalKind};
use crate::runtime::tasks::TaskKind;

/// How long the stream of a run is kept that ended before it began.
const NEVER_BEGAN_RETENTION: Duration = Duration::from_secs(60);

/// The end of a run on which nobody works, for those who view it or wait for it here.
pub(super) struct Closing {
    run: RunRecord,
    /// The handle that the run had when this was begun; a later attempt has another one.
    live: Option<Arc<LiveRun>>,
    registry: Arc<RunRegistry>,
    _settling: Settling,
}

impl Closing {
    /// `None` when a task of this process is at it already: who waits for the run here is sent to the store then.
    pub(super) fn begin(run: &RunRecord, registry: &Arc<RunRegistry>) -> Option<Self> {
        let live = registry.live(&run.run_id);
        let Some(settling) = registry.settling.begin(&run.run_id, run.attempt) else {
            let_go(&run.run_id, live, registry);
            return None;
        };
        Some(Self {
            run: run.clone(),
            live,
            registry: registry.clone(),
            _settling: settling,
        })
    }

    /// Tells how the run ended, once that is durable: at once, or when the store is back. In a task: a bridge that is out of order
    /// makes nobody else wait.
    pub(super) fn close(self, ending: Ending, outcome: RunOutcome, parts: &RuntimeParts) {
        match ending {
            Ending::Stored => {
                let then = parts.clone();
                parts.tasks.spawn(TaskKind::Finish, "run end", async move {
                    self.tell(outcome, &then).await
                });
            }
            Ending::Refused => let_go(&self.run.run_id, self.live, &self.registry),
            Ending::Later(_) => {
                let then = parts.clone();
                parts.tasks.spawn(TaskKind::Service, "run end", async move {
                    if ending.stored(&then).await {
                        self.tell(outcome, &then).await
                    } else {
                        let_go(&self.run.run_id, self.live, &self.registry)
                    }
                });
            }
        }
    }

    async fn tell(self, outcome: RunOutcome, parts: &RuntimeParts) {
        let run_id = &self.run.run_id;
        recovery::tell_end(
            &self.run,
            outcome.error.as_ref().map(|(_, text)| text.as_str()),
            parts,
        )
        .await;
        self.end_stream(&outcome, parts).await;
        // Whoever viewed a former attempt finds its events for as long as those of any run.
        let kept = if self.had_begun() {
            self.registry.limits.read().stream_retention
        } else {
            NEVER_BEGAN_RETENTION
        };
        parts.bridge.cleanup(run_id, kept).await;
        if let Some(live) = &self.live {
            self.registry.live.remove_exactly(run_id, live);
            live.set_status(outcome.status);
            live.finished(outcome);
        }
        parts.bell.ring(Ring::Ended(run_id.clone()));
        self.registry.doorbell.ring();
    }

    /// A stream that was begun ends as its owner would end it: behind all that is known of it anywhere.
    async fn end_stream(&self, outcome: &RunOutcome, parts: &RuntimeParts) {
        let run_id = &self.run.run_id;
        let (kind, data) = match &outcome.error {
            Some((name, text)) => (
                TerminalKind::Error,
                Some(error_frame(name, text).data.into_bytes()),
            ),
            None if self.had_begun() => (TerminalKind::Cancel, None),
            None => return parts.bridge.cancel(run_id).await,
        };
        let key = StreamKey {
            run_id: run_id.clone(),
            attempt: self.run.attempt,
        };
        match parts.bridge.publish_terminal(&key, kind, data).await {
            Ok(()) | Err(BridgeError::Ended(_) | BridgeError::Closed) => {}
            Err(error) => tracing::warn!(%run_id, %error, "the end did not reach the stream"),
        }
    }

    /// Whether a former attempt may have published something.
    fn had_begun(&self) -> bool {
        self.run.attempt > 1
    }
}

/// The store knows more of the run than this process does.
fn let_go(run_id: &RunId, live: Option<Arc<LiveRun>>, registry: &RunRegistry) {
    if let Some(live) = live {
        registry.live.remove_exactly(run_id, &live);
        live.left();
    }
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
