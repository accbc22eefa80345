//! Follows runs: live ones through the bridge, finished ones from what is left of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::time::Instant;

use super::error::RunError;
use super::looks::RunLook;
use super::parts::RuntimeParts;
use super::patience::subscribe_to;
use super::record::RunRecord;
use super::registry::RunRegistry;
use super::status::RunStatus;
use super::stored_end::{
    last_seen, leftover, terminal_of, until_stored_end, until_stored_end_after,
};
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::stream_bridge::{
    BridgeError, ResumeFrom, ResumeResult, StreamItem, Subscription,
};

/// How long a viewer of a run that is being started hears nothing at all.
const OPENING_PATIENCE: Duration = Duration::from_secs(1);
/// How long, and how often, a run that is at work somewhere is looked for. Within the time that taking it over may need.
const OPENING_LIMIT: Duration = Duration::from_secs(20);
const OPENING_LOOK: Duration = Duration::from_millis(250);

/// A run's events as one viewer gets them.
pub struct RunStream {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What it begins with.
    pub resume: ResumeResult,
    /// Events; the last item is an end, a gap or an abort.
    pub items: BoxStream<'static, StreamItem>,
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream")
            .field("run_id", &self.run_id)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

/// Follows `record`'s run from a cursor on.
#[tracing::instrument(name = "subscribe", skip_all)]
pub(super) async fn subscribe(
    record: &RunRecord,
    from: ResumeFrom,
    heartbeat: Duration,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> Result<RunStream, RunError> {
    match registry.live(&record.run_id) {
        Some(live) => {
            let opens_soon = live.status() != RunStatus::Pending
                && tokio::time::timeout(OPENING_PATIENCE, live.opened.cancelled())
                    .await
                    .is_ok();
            if !opens_soon {
                let opened = async move { live.opened.cancelled().await };
                return Ok(from_its_beginning(
                    record,
                    opened.boxed(),
                    from,
                    heartbeat,
                    registry,
                    parts,
                ));
            }
        }
        None if record.status == RunStatus::Pending => {
            return Ok(from_its_beginning(
                record,
                begun_elsewhere(registry.looks.at(&record.run_id, parts)).boxed(),
                from,
                heartbeat,
                registry,
                parts,
            ));
        }
        None => {}
    }
    let (resume, items) = match found(record, from, heartbeat, registry, parts).await {
        Ok(Subscription {
            resume: ResumeResult::Unknown,
            ..
        }) => {
            // The bridge has forgotten the run, or never knew it. What the store says of it is still an answer.
            let record = parts
                .query
                .get(&record.run_id, &Owner::None)
                .await?
                .unwrap_or_else(|| record.clone());
            let resume = terminal_of(&record).map_or(ResumeResult::Unknown, ResumeResult::Ended);
            let last = last_seen(from);
            (
                resume,
                stream::iter(leftover(&record, last, last.is_some())).boxed(),
            )
        }
        Ok(subscription) => (
            subscription.resume,
            watched(subscription.items, from, &record.run_id, registry, parts),
        ),
        Err(RunError::Bridge(BridgeError::Transport(why))) => {
            // Its events cannot be had; how it ended can, if it did.
            let stored = parts.query.get(&record.run_id, &Owner::None).await?;
            let Some((record, kind)) =
                stored.and_then(|record| terminal_of(&record).map(|kind| (record, kind)))
            else {
                return Err(BridgeError::Transport(why).into());
            };
            (
                ResumeResult::Ended(kind),
                stream::iter(leftover(&record, last_seen(from), true)).boxed(),
            )
        }
        Err(error) => return Err(error),
    };
    Ok(RunStream {
        run_id: record.run_id.clone(),
        thread_id: record.thread_id.clone(),
        resume,
        items,
    })
}

/// The bridge's stream of a run. With several processes it may open a moment from now: the run is being taken by one of them.
async fn found(
    record: &RunRecord,
    from: ResumeFrom,
    heartbeat: Duration,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> Result<Subscription, RunError> {
    let until = Instant::now() + OPENING_LIMIT;
    let look = registry.looks.at(&record.run_id, parts);
    loop {
        let subscription = subscribe_to(&look, from, heartbeat, &*parts.bridge).await?;
        let missing = subscription.resume == ResumeResult::Unknown
            && registry.membership.is_shared()
            && Instant::now() < until;
        if !missing {
            return Ok(subscription);
        }
        let over = look
            .within(OPENING_LOOK)
            .await?
            .is_none_or(|now| now.status.is_terminal());
        if over {
            // All of it may have happened since the bridge was asked.
            return subscribe_to(&look, from, heartbeat, &*parts.bridge).await;
        }
        tokio::time::sleep(OPENING_LOOK).await;
    }
}

/// The items of a run, whose end the store knows too once another process executes it.
pub(super) fn watched(
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    run_id: &RunId,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> BoxStream<'static, StreamItem> {
    let look = registry.looks.at(run_id, parts);
    match registry.live(run_id) {
        // One whose lease lapses here leaves: its viewers ask the store from then on.
        Some(live) => {
            let left = async move {
                // Whose end is told here needs no other.
                if live.ended().await.is_some() {
                    std::future::pending::<()>().await;
                }
            };
            until_stored_end_after(left.boxed(), items, from, look, parts.bridge.clone())
        }
        _ => until_stored_end(items, from, look, parts.bridge.clone()),
    }
}

/// Waits until another process has taken a run that waits, or has ended it.
async fn begun_elsewhere(look: Arc<RunLook>) {
    loop {
        match look.within(OPENING_LOOK).await {
            Ok(Some(run)) if run.status == RunStatus::Pending => {}
            // The row says `starting` a moment before the stream opens.
            Ok(Some(run)) if run.status == RunStatus::Starting => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(run_id = %look.run_id(), %error, "a run that waits cannot be looked up")
            }
        }
        tokio::time::sleep(OPENING_LOOK).await;
    }
}

/// Follows a run that waits: heartbeats until it begins, then all of it.
fn from_its_beginning(
    record: &RunRecord,
    opened: BoxFuture<'static, ()>,
    from: ResumeFrom,
    heartbeat: Duration,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> RunStream {
    let beats = stream::unfold(heartbeat, |heartbeat| async move {
        match heartbeat.is_zero() {
            true => std::future::pending::<()>().await,
            false => tokio::time::sleep(heartbeat).await,
        }
        Some((StreamItem::Heartbeat, heartbeat))
    });
    let bridge = parts.bridge.clone();
    let look = registry.looks.at(&record.run_id, parts);
    let events = stream::once(async move {
        match subscribe_to(&look, from, heartbeat, &*bridge).await {
            Ok(subscription) if subscription.resume != ResumeResult::Unknown => {
                until_stored_end(subscription.items, from, look, bridge)
            }
            Ok(_) => stream::iter([StreamItem::Aborted]).boxed(),
            Err(error) => {
                tracing::warn!(run_id = %look.run_id(), %error, "a run that waited cannot be followed");
                stream::iter([StreamItem::Aborted]).boxed()
            }
        }
    });
    let items = beats.take_until(opened).chain(events.flatten()).boxed();
    RunStream {
        run_id: record.run_id.clone(),
        thread_id: record.thread_id.clone(),
        resume: ResumeResult::From(1),
        items,
    }
}

#[cfg(test)]
#[path = "stream_service_tests.rs"]
mod tests;
