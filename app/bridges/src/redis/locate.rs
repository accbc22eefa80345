//! Start position of a viewer: in the server's stream, in the durable log, or in the publisher's
//! memory.

use std::sync::Arc;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{BridgeError, ResumeFrom};

use super::run_log::{Located, RunLog, StreamPosition, cursor_of};
use super::shared::BridgeShared;
use super::stream_head::StreamHead;

impl BridgeShared {
    /// Returns the log of a run and the position of the cursor in it; `None` if the run is unknown.
    pub(super) async fn locate_run(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
    ) -> Result<Option<(Arc<RunLog>, Located)>, BridgeError> {
        if let Some(log) = self.runs.get(run_id).filter(|log| log.is_publisher()) {
            self.wait_settled(&log).await;
            let located = match log.locate(from) {
                Located::Gap(gap) => self
                    .locate_in_durable_log(&log, from)
                    .await
                    .map_or(Located::Gap(gap), Located::At),
                at => at,
            };
            return Ok(Some((log, located)));
        }
        let snapshot = self.sources.read_stream(run_id, None).await;
        if let Ok(snapshot) = &snapshot
            && let Some(head) = snapshot.head.as_ref().filter(|_| snapshot.complete)
            && let Some(next) = head.locate(from)
        {
            return Ok(Some(self.follow(run_id, head.clone(), next)));
        }
        // The server does not have the whole stream, or is unavailable: the durable log may have
        // the missing events.
        let logged = self.sources.logged(run_id).await.unwrap_or_else(|error| {
            tracing::warn!(%run_id, %error, "cannot look up a stream in the durable log");
            Default::default()
        });
        let stored = match snapshot {
            Ok(snapshot) => snapshot.head.map(|head| (head, snapshot.complete)),
            Err(outage) if logged.is_empty() => {
                return Err(BridgeError::Transport(outage.to_string()));
            }
            Err(outage) => {
                let head = StreamHead::default().with(&logged);
                let next = head
                    .locate(from)
                    .ok_or_else(|| BridgeError::Transport(outage.to_string()))?;
                return Ok(Some(self.follow(run_id, head, next)));
            }
        };
        let head = match stored {
            None if logged.is_empty() => return Ok(None),
            None => StreamHead::default().with(&logged),
            // The events of an ended run are never rebuilt.
            Some((head, false)) if head.ended().is_some() => StreamHead {
                first: head.tail + 1,
                ..head
            }
            .with(&logged),
            Some((head, _)) => head.with(&logged),
        };
        let Some(next) = head.locate(from) else {
            let gap = head.gap(run_id, cursor_of(from));
            return Ok(Some((self.runs.detached(run_id, head), Located::Gap(gap))));
        };
        Ok(Some(self.follow(run_id, head, next)))
    }

    fn follow(&self, run_id: &RunId, head: StreamHead, next: u64) -> (Arc<RunLog>, Located) {
        let ended = head.ended();
        let log = match ended {
            Some(_) => self.runs.detached(run_id, head),
            None => {
                let (log, new) = self.runs.open(run_id, || head);
                if new {
                    // New events may have arrived since the read.
                    self.schedule_poll(&log);
                }
                log
            }
        };
        let generation = log.generation();
        (
            log,
            Located::At(StreamPosition {
                next,
                ended,
                generation,
            }),
        )
    }

    /// Locates a cursor in a published run that is older than the events which the server retains.
    async fn locate_in_durable_log(
        &self,
        log: &RunLog,
        from: ResumeFrom,
    ) -> Option<StreamPosition> {
        self.sources.durable.as_ref()?;
        let logged = self.sources.logged(log.run_id()).await;
        let logged = logged.inspect_err(|error| tracing::warn!(run_id = %log.run_id(), %error, "cannot read a spilled stream")).ok()?;
        log.position_with(from, &logged)
    }
}
