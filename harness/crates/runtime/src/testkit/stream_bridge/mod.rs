//! Contract of [`StreamBridge`], one function per guarantee.
//!
//! An adapter implements [`StreamBridgeFactory`] for its tests and writes one
//! [`stream_bridge_contract!`](crate::stream_bridge_contract). No test waits longer than
//! [`RECEIVE_TIMEOUT`] for an item that should arrive, so a broken adapter fails instead of
//! hanging.

mod ending;
mod order;
mod pace;
mod resuming;
mod spilling;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::Instant;

pub use self::ending::*;
pub use self::order::*;
pub use self::pace::*;
pub use self::resuming::*;
pub use self::spilling::*;
use crate::stream_bridge::{
    EventId, EventName, ResumeFrom, StreamBridge, StreamEvent, StreamItem, StreamKey, StreamLog,
    Subscription,
};
use deerflow_core::ids::RunId;

/// Maximum wait for an item that should arrive.
pub const RECEIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Heartbeat interval that no test reaches.
const NO_HEARTBEAT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Limits of the bridge under test.
#[derive(Debug, Clone, Copy)]
pub struct TestLimits {
    /// Maximum number of events per run.
    pub max_events: usize,
    /// Time without progress after which a viewer is disconnected.
    pub stalled_subscriber_timeout: Duration,
    /// Time without a publish after which an open stream is aborted.
    pub idle_stream_ttl: Duration,
}

impl Default for TestLimits {
    fn default() -> Self {
        let long = Duration::from_secs(60 * 60);
        Self {
            max_events: 10_000,
            stalled_subscriber_timeout: long,
            idle_stream_ttl: 24 * long,
        }
    }
}

/// Creates bridges for the suite.
#[async_trait]
pub trait StreamBridgeFactory: Send + Sync + fmt::Debug {
    /// Opens a started, empty bridge with these limits.
    async fn open(&self, limits: TestLimits) -> Arc<dyn StreamBridge>;

    /// Opens a bridge with these limits over a durable log.
    async fn open_with_log(
        &self,
        limits: TestLimits,
        log: Arc<dyn StreamLog>,
    ) -> Arc<dyn StreamBridge>;

    /// Unit of the time limits that tests wait for. Without paused time it must be longer than a
    /// busy machine stalls, and less than a quarter of [`RECEIVE_TIMEOUT`].
    fn unit(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Generates one test per guarantee: `stream_bridge_contract!([#[tokio::test]] MyFactory)`.
#[macro_export]
macro_rules! stream_bridge_contract {
    ([$(#[$attr:meta])+] $factory:expr) => {
        $crate::stream_bridge_contract! { @each [$(#[$attr])+] [$factory]
            event_ids_are_consecutive_from_one
            all_viewers_see_the_same_events
            runs_are_isolated
            higher_attempt_continues_numbering
            lower_attempt_is_fenced
            leaving_viewer_does_not_affect_others
            waiting_viewer_is_woken_by_every_change
            resumed_viewer_gets_events_after_cursor
            tail_viewer_gets_only_new_events
            cursor_ahead_of_tail_is_a_gap
            cursor_of_unknown_attempt_is_a_gap
            cursor_of_lost_attempt_resumes_at_newer_attempt
            cursor_of_vanished_attempt_resumes_at_start
            cursor_before_retained_events_is_a_gap
            overtaken_reader_gets_gap_and_nothing_else
            unknown_run_gives_empty_stream
            end_is_delivered_once_and_last
            every_end_kind_reaches_live_and_late_viewers
            error_event_precedes_end
            nothing_is_published_after_the_end
            cancelled_stream_stays_ended
            a_run_that_never_published_can_be_cancelled
            cancelling_an_ended_stream_changes_nothing
            cleanup_waits_for_delay_and_spares_active_viewers
            close_aborts_viewers_and_rejects_calls
            silence_produces_heartbeats
            events_postpone_heartbeats
            stalled_viewer_is_aborted_and_may_resume
            waiting_viewer_is_not_stalled
            unpolled_viewer_does_not_slow_producer
            stream_without_producer_is_aborted
            awaiting_input_suspends_idle_limit
            run_beyond_limits_is_replayed_completely
            overtaken_reader_reads_from_durable_log
            cursors_in_durable_log_respect_attempts
            events_rejected_by_durable_log_become_a_gap
            hanging_durable_log_slows_no_viewer
        }
    };
    (@each $attrs:tt $factory:tt $($promise:ident)+) => {
        $($crate::stream_bridge_contract! { @one $attrs $factory $promise })+
    };
    (@one [$(#[$attr:meta])+] [$factory:expr] $promise:ident) => {
        $(#[$attr])+
        async fn $promise() {
            $crate::testkit::stream_bridge::$promise(&$factory).await;
        }
    };
}

/// A bridge with one run, and helpers to publish and subscribe.
#[derive(Debug)]
struct Scene {
    bridge: Arc<dyn StreamBridge>,
    run: RunId,
}

impl Scene {
    async fn open(factory: &dyn StreamBridgeFactory) -> Self {
        Self::with(factory, TestLimits::default()).await
    }

    async fn with(factory: &dyn StreamBridgeFactory, limits: TestLimits) -> Self {
        Self {
            bridge: factory.open(limits).await,
            run: run_id("run-1"),
        }
    }

    fn key(&self, attempt: u32) -> StreamKey {
        StreamKey {
            run_id: self.run.clone(),
            attempt,
        }
    }

    /// Publishes `count` events and returns their ids.
    async fn publish(&self, attempt: u32, count: usize) -> Vec<EventId> {
        let mut ids = Vec::new();
        for nth in 0..count {
            let data = Bytes::from(format!("[{attempt},{nth}]")).into();
            let published = self
                .bridge
                .publish(&self.key(attempt), EventName::Borrowed("values"), data)
                .await;
            ids.push(published.expect("an open stream takes events"));
        }
        ids
    }

    async fn end(&self) {
        self.bridge
            .publish_end(&self.key(u32::MAX))
            .await
            .expect("an open stream can be ended");
    }

    async fn view(&self, from: ResumeFrom) -> Subscription {
        self.view_with(from, NO_HEARTBEAT).await
    }

    async fn view_with(&self, from: ResumeFrom, heartbeat: Duration) -> Subscription {
        self.bridge
            .subscribe(&self.run, from, heartbeat)
            .await
            .expect("an open bridge can be subscribed to")
    }
}

fn run_id(text: &str) -> RunId {
    RunId::parse(text).expect("a valid id")
}

fn id(seq: u64, attempt: u32) -> EventId {
    EventId { seq, attempt }
}

/// Returns the next item, or `None` at the end of the stream.
async fn next(view: &mut Subscription) -> Option<StreamItem> {
    let began = Instant::now();
    let item = tokio::time::timeout(RECEIVE_TIMEOUT, view.items.next())
        .await
        .expect("an item or the end should have arrived");
    // A timeout polls once more before it fails. An item that is returned only by this poll arrived
    // without a wake-up of its viewer.
    assert!(
        began.elapsed() < RECEIVE_TIMEOUT,
        "the viewer was not woken for {item:?}"
    );
    item
}

/// Returns the next item, which must be an event.
async fn next_event(view: &mut Subscription) -> StreamEvent {
    match next(view).await {
        Some(StreamItem::Event(event)) => event,
        other => panic!("expected an event, got {other:?}"),
    }
}

/// Returns the next `count` events.
async fn events(view: &mut Subscription, count: usize) -> Vec<StreamEvent> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(next_event(view).await);
    }
    taken
}

/// Returns the ids of the next `count` events.
async fn ids(view: &mut Subscription, count: usize) -> Vec<EventId> {
    events(view, count)
        .await
        .iter()
        .map(|event| event.id)
        .collect()
}

/// Returns all items up to the end of the stream.
async fn rest(view: &mut Subscription) -> Vec<StreamItem> {
    let mut items = Vec::new();
    while let Some(item) = next(view).await {
        items.push(item);
    }
    items
}

/// Fails if an item is available, or arrives without a publish.
fn assert_silent(view: &mut Subscription) {
    let item = futures_util::FutureExt::now_or_never(view.items.next());
    assert!(item.is_none(), "expected silence, got {item:?}");
}
