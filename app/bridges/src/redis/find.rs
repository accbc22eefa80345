//! Where a viewer begins: in the server's log, in the durable one, or in what their owner holds.

use std::sync::Arc;

use harness::ids::RunId;
use harness::runtime::stream_bridge::{BridgeError, ResumeFrom};

use super::inner::Inner;
use super::log::{Located, Place, RunLog, cursor_of};
use super::outline::Outline;

impl Inner {
    /// The log to view a run with, and where in it; `None` for a run that nobody knows.
    pub(super) async fn find(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
    ) -> Result<Option<(Arc<RunLog>, Located)>, BridgeError> {
        if let Some(log) = self.runs.get(run_id).filter(|log| log.is_owned()) {
            self.settled(&log).await;
            let located = match log.locate(from) {
                Located::Gap(gap) => self
                    .find_beside(&log, from)
                    .await
                    .map_or(Located::Gap(gap), Located::At),
                at => at,
            };
            return Ok(Some((log, located)));
        }
        let look = self.around.look_at(run_id, None).await;
        if let Ok(look) = &look
            && let Some(outline) = look.outline.as_ref().filter(|_| look.whole)
            && let Some(next) = outline.locate(from)
        {
            return Ok(Some(self.follow(run_id, outline.clone(), next)));
        }
        // Not all of it is at the server, or the server is out of order: the durable log may have the rest.
        let logged = self.around.logged(run_id).await.unwrap_or_else(|error| {
            tracing::warn!(%run_id, %error, "a stream cannot be looked up in the durable log");
            Default::default()
        });
        let there = match look {
            Ok(look) => look.outline.map(|outline| (outline, look.whole)),
            Err(outage) if logged.is_empty() => {
                return Err(BridgeError::Transport(outage.to_string()));
            }
            Err(outage) => {
                let outline = Outline::default().with(&logged);
                let next = outline
                    .locate(from)
                    .ok_or_else(|| BridgeError::Transport(outage.to_string()))?;
                return Ok(Some(self.follow(run_id, outline, next)));
            }
        };
        let outline = match there {
            None if logged.is_empty() => return Ok(None),
            None => Outline::default().with(&logged),
            // Nobody makes the events of an ended run anew.
            Some((outline, false)) if outline.ended().is_some() => Outline {
                first: outline.tail + 1,
                ..outline
            }
            .with(&logged),
            Some((outline, _)) => outline.with(&logged),
        };
        let Some(next) = outline.locate(from) else {
            let gap = outline.gap(run_id, cursor_of(from));
            return Ok(Some((
                self.runs.unlisted(run_id, outline),
                Located::Gap(gap),
            )));
        };
        Ok(Some(self.follow(run_id, outline, next)))
    }

    fn follow(&self, run_id: &RunId, outline: Outline, next: u64) -> (Arc<RunLog>, Located) {
        let ended = outline.ended();
        let log = match ended {
            Some(_) => self.runs.unlisted(run_id, outline),
            None => {
                let (log, new) = self.runs.open(run_id, || outline);
                if new {
                    // Something may have come since the look.
                    self.wake_for(&log);
                }
                log
            }
        };
        let generation = log.generation();
        (
            log,
            Located::At(Place {
                next,
                ended,
                generation,
            }),
        )
    }

    /// Where a viewer of an owned run begins whose cursor is older than what the server keeps.
    async fn find_beside(&self, log: &RunLog, from: ResumeFrom) -> Option<Place> {
        self.around.durable.as_ref()?;
        let logged = self.around.logged(log.run_id()).await;
        let logged = logged.inspect_err(|error| tracing::warn!(run_id = %log.run_id(), %error, "a spilled stream cannot be read")).ok()?;
        log.place_with(from, &logged)
    }
}
