//! Follows runs: live ones through the bridge, finished ones from what is left of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::time::Instant;

use super::error::RunError;
use super::live::LiveRun;
use super::parts::RuntimeParts;
use super::record::RunRecord;
use super::registry::RunRegistry;
use super::status::RunStatus;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{EventId, ResumeFrom, ResumeResult, StreamEvent, StreamItem, Subscription, TerminalKind};

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
        f.debug_struct("RunStream").field("run_id", &self.run_id).field("resume", &self.resume).finish_non_exhaustive()
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
    let live = registry.live(&record.run_id);
    if let Some(live) = live.filter(|live| live.status() == RunStatus::Pending) {
        return Ok(from_its_beginning(record, live, from, heartbeat, parts));
    }
    if let Some(live) = registry.live(&record.run_id) {
        live.opened.cancelled().await;
    }
    let subscription = found(record, from, heartbeat, registry, parts).await?;
    let (resume, items) = if subscription.resume == ResumeResult::Unknown {
        // The bridge has forgotten the run, or never knew it. What the store says of it is still an answer.
        let record = parts.query.get(&record.run_id, &Owner::None).await?.unwrap_or_else(|| record.clone());
        (terminal_of(&record).map_or(ResumeResult::Unknown, ResumeResult::Ended), leftover(&record))
    } else {
        (subscription.resume, subscription.items)
    };
    Ok(RunStream { run_id: record.run_id.clone(), thread_id: record.thread_id.clone(), resume, items })
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
    loop {
        let subscription = parts.bridge.subscribe(&record.run_id, from, heartbeat).await?;
        let missing = subscription.resume == ResumeResult::Unknown && registry.membership.is_shared() && Instant::now() < until;
        if !missing {
            return Ok(subscription);
        }
        let over = parts.query.get(&record.run_id, &Owner::None).await?.is_none_or(|now| now.status.is_terminal());
        if over {
            return Ok(subscription);
        }
        tokio::time::sleep(OPENING_LOOK).await;
    }
}

/// Follows a run that waits: heartbeats until it begins, then all of it.
fn from_its_beginning(record: &RunRecord, live: Arc<LiveRun>, from: ResumeFrom, heartbeat: Duration, parts: &RuntimeParts) -> RunStream {
    let beats = stream::unfold(heartbeat, |heartbeat| async move {
        match heartbeat.is_zero() {
            true => std::future::pending::<()>().await,
            false => tokio::time::sleep(heartbeat).await,
        }
        Some((StreamItem::Heartbeat, heartbeat))
    });
    let (bridge, run_id) = (parts.bridge.clone(), record.run_id.clone());
    let opened = async move { live.opened.cancelled().await };
    let events = stream::once(async move {
        match bridge.subscribe(&run_id, from, heartbeat).await {
            Ok(subscription) if subscription.resume != ResumeResult::Unknown => subscription.items,
            Ok(_) => stream::iter([StreamItem::Aborted]).boxed(),
            Err(error) => {
                tracing::warn!(%run_id, %error, "a run that waited cannot be followed");
                stream::iter([StreamItem::Aborted]).boxed()
            }
        }
    });
    let items = beats.take_until(opened.boxed()).chain(events.flatten()).boxed();
    RunStream { run_id: record.run_id.clone(), thread_id: record.thread_id.clone(), resume: ResumeResult::From(1), items }
}

fn terminal_of(record: &RunRecord) -> Option<TerminalKind> {
    match record.status {
        RunStatus::Success => Some(TerminalKind::End),
        RunStatus::Error | RunStatus::Timeout => Some(TerminalKind::Error),
        RunStatus::Interrupted => Some(TerminalKind::Cancel),
        RunStatus::Pending | RunStatus::Starting | RunStatus::Running => None,
    }
}

/// The end of a run whose events are gone; an active one that nobody here can stream is aborted, so that the client comes back.
fn leftover(record: &RunRecord) -> BoxStream<'static, StreamItem> {
    let Some(kind) = terminal_of(record) else {
        return stream::iter([StreamItem::Aborted]).boxed();
    };
    let mut items = Vec::new();
    if kind == TerminalKind::Error {
        let data = error_frame(record.error_name(), record.error.as_deref().unwrap_or("the run failed")).data;
        items.push(StreamItem::Event(StreamEvent { id: EventId { seq: 1, attempt: record.attempt }, event: "error".into(), data }));
    }
    items.push(StreamItem::End(kind));
    stream::iter(items).boxed()
}
