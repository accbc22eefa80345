//! Subscriptions to runs: through the bridge while it has the events, otherwise from the stored end
//! of the run.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::time::Instant;

use super::resubscribe::subscribe_with_retry;
use super::terminal_fallback::{
    last_seen, synthesized_tail, with_store_fallback, with_store_fallback_after,
};
use crate::definition::{RunRecord, RunStatus};
use crate::kernel::{RunError, Runtime, StatusPoller};
use crate::stream_bridge::{BridgeError, ResumeFrom, ResumeResult, StreamItem, Subscription};
use crate::termination::terminal_of;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Timeout for the start of a run in this process. After it, the subscriber receives heartbeats
/// until the run starts.
const LOCAL_OPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout and interval of lookups of a stream that another process is about to open. Covers the
/// time of a takeover.
const REMOTE_OPEN_TIMEOUT: Duration = Duration::from_secs(20);
const REMOTE_OPEN_POLL: Duration = Duration::from_millis(250);

/// Stream of a run's events for one subscriber.
pub struct RunStream {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Position at which the stream starts.
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

/// Subscribes to `record`'s run from a cursor.
#[tracing::instrument(name = "subscribe", skip_all)]
pub(crate) async fn subscribe(
    record: &RunRecord,
    from: ResumeFrom,
    heartbeat: Duration,
    runtime: &Runtime,
) -> Result<RunStream, RunError> {
    match runtime.registry.active(&record.run_id) {
        Some(active) => {
            let is_open = active.status() != RunStatus::Pending
                && tokio::time::timeout(LOCAL_OPEN_TIMEOUT, active.opened.cancelled())
                    .await
                    .is_ok();
            if !is_open {
                let opened = async move { active.opened.cancelled().await };
                return Ok(from_start(record, opened.boxed(), from, heartbeat, runtime));
            }
        }
        None if record.status == RunStatus::Pending => {
            return Ok(from_start(
                record,
                started_elsewhere(
                    runtime
                        .registry
                        .pollers
                        .for_run(&record.run_id, &runtime.ports),
                )
                .boxed(),
                from,
                heartbeat,
                runtime,
            ));
        }
        None => {}
    }
    let (resume, items) = match subscribe_when_open(record, from, heartbeat, runtime).await {
        Ok(Subscription {
            resume: ResumeResult::Unknown,
            ..
        }) => {
            // The bridge does not have the run, but the store has its status.
            let record = runtime
                .ports
                .query
                .get(&record.run_id, &Owner::None)
                .await?
                .unwrap_or_else(|| record.clone());
            let resume = terminal_of(&record).map_or(ResumeResult::Unknown, ResumeResult::Ended);
            let last = last_seen(from);
            (
                resume,
                stream::iter(synthesized_tail(&record, last, last.is_some())).boxed(),
            )
        }
        Ok(subscription) => (
            subscription.resume,
            with_fallback(subscription.items, from, &record.run_id, runtime),
        ),
        Err(RunError::Bridge(BridgeError::Transport(why))) => {
            // The events are unavailable, but the end of the run may be stored.
            let stored = runtime
                .ports
                .query
                .get(&record.run_id, &Owner::None)
                .await?;
            let Some((record, kind)) =
                stored.and_then(|record| terminal_of(&record).map(|kind| (record, kind)))
            else {
                return Err(BridgeError::Transport(why).into());
            };
            (
                ResumeResult::Ended(kind),
                stream::iter(synthesized_tail(&record, last_seen(from), true)).boxed(),
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

/// Subscribes to the bridge's stream of a run. In a shared store, another process may have claimed
/// the run without having opened its stream. Then the lookup is repeated.
async fn subscribe_when_open(
    record: &RunRecord,
    from: ResumeFrom,
    heartbeat: Duration,
    runtime: &Runtime,
) -> Result<Subscription, RunError> {
    let until = Instant::now() + REMOTE_OPEN_TIMEOUT;
    let poller = runtime
        .registry
        .pollers
        .for_run(&record.run_id, &runtime.ports);
    loop {
        let subscription =
            subscribe_with_retry(&poller, from, heartbeat, &*runtime.ports.bridge).await?;
        let missing = subscription.resume == ResumeResult::Unknown
            && runtime.registry.node_lease.is_shared()
            && Instant::now() < until;
        if !missing {
            return Ok(subscription);
        }
        let has_ended = poller
            .cached_within(REMOTE_OPEN_POLL)
            .await?
            .is_none_or(|now| now.status.is_terminal());
        if has_ended {
            // The stream may have been opened and ended since the last lookup.
            return subscribe_with_retry(&poller, from, heartbeat, &*runtime.ports.bridge).await;
        }
        tokio::time::sleep(REMOTE_OPEN_POLL).await;
    }
}

/// Adds the store fallback to the items of a run: a stream without events ends as the store
/// reports. Not used while this process executes the run.
pub(crate) fn with_fallback(
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    run_id: &RunId,
    runtime: &Runtime,
) -> BoxStream<'static, StreamItem> {
    let poller = runtime.registry.pollers.for_run(run_id, &runtime.ports);
    match runtime.registry.active(run_id) {
        // A run that is detached here, for example at the end of the lease, is followed by the
        // store fallback.
        Some(active) => {
            let detached = async move {
                // The end of the run was published here; no fallback is needed.
                if active.ended().await.is_some() {
                    std::future::pending::<()>().await;
                }
            };
            with_store_fallback_after(
                detached.boxed(),
                items,
                from,
                poller,
                runtime.ports.bridge.clone(),
            )
        }
        _ => with_store_fallback(items, from, poller, runtime.ports.bridge.clone()),
    }
}

/// Waits until another process has started or ended a queued run.
async fn started_elsewhere(poller: Arc<StatusPoller>) {
    loop {
        match poller.cached_within(REMOTE_OPEN_POLL).await {
            Ok(Some(run)) if run.status == RunStatus::Pending => {}
            // The status is `starting` shortly before the stream opens.
            Ok(Some(run)) if run.status == RunStatus::Starting => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(
                    run_id = %poller.run_id(), %error,
                    "cannot read the status of a queued run"
                )
            }
        }
        tokio::time::sleep(REMOTE_OPEN_POLL).await;
    }
}

/// Subscribes to a queued run: heartbeats until it starts, then all of its events.
fn from_start(
    record: &RunRecord,
    opened: BoxFuture<'static, ()>,
    from: ResumeFrom,
    heartbeat: Duration,
    runtime: &Runtime,
) -> RunStream {
    let beats = stream::unfold(heartbeat, |heartbeat| async move {
        match heartbeat.is_zero() {
            true => std::future::pending::<()>().await,
            false => tokio::time::sleep(heartbeat).await,
        }
        Some((StreamItem::Heartbeat, heartbeat))
    });
    let bridge = runtime.ports.bridge.clone();
    let poller = runtime
        .registry
        .pollers
        .for_run(&record.run_id, &runtime.ports);
    let events = stream::once(async move {
        match subscribe_with_retry(&poller, from, heartbeat, &*bridge).await {
            Ok(subscription) if subscription.resume != ResumeResult::Unknown => {
                with_store_fallback(subscription.items, from, poller, bridge)
            }
            Ok(_) => stream::iter([StreamItem::Aborted]).boxed(),
            Err(error) => {
                tracing::warn!(
                    run_id = %poller.run_id(), %error,
                    "cannot subscribe to a run that was queued"
                );
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
