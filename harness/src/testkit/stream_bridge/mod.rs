//! The promises of [`StreamBridge`], one function each.
//!
//! An adapter implements [`StreamBridgeFactory`] for its tests and writes one [`stream_bridge_contract!`](crate::stream_bridge_contract).
//! Nothing here waits longer than [`PATIENCE`] for something that should come, so a broken adapter fails instead of hanging.

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
use crate::ids::RunId;
use crate::runtime::stream_bridge::{
    EventId, EventName, ResumeFrom, StreamBridge, StreamEvent, StreamItem, StreamKey, StreamLog,
    Subscription,
};

/// The longest wait for an item that should come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A heartbeat that no test lives to see.
const QUIET: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What a test asks of the bridge it gets.
#[derive(Debug, Clone, Copy)]
pub struct TestLimits {
    /// Events kept per run.
    pub max_events: usize,
    /// After how long a viewer that makes no progress is cut.
    pub stalled_subscriber_timeout: Duration,
    /// After how long without a publish an open stream is given up.
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

/// Makes bridges for the suite.
#[async_trait]
pub trait StreamBridgeFactory: Send + Sync + fmt::Debug {
    /// A started, empty bridge with these limits.
    async fn open(&self, limits: TestLimits) -> Arc<dyn StreamBridge>;

    /// The same over a durable log.
    async fn open_with_log(
        &self,
        limits: TestLimits,
        log: Arc<dyn StreamLog>,
    ) -> Arc<dyn StreamBridge>;

    /// What limits that tests wait out are multiples of. Where time is not paused: longer than a busy machine stands still, and less than
    /// a quarter of [`PATIENCE`].
    fn unit(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Writes one test per promise: `stream_bridge_contract!([#[tokio::test]] MyFactory)`.
#[macro_export]
macro_rules! stream_bridge_contract {
    ([$(#[$attr:meta])+] $factory:expr) => {
        $crate::stream_bridge_contract! { @each [$(#[$attr])+] [$factory]
            ids_count_from_one_without_holes
            every_viewer_sees_the_same_whenever_it_came
            runs_do_not_mix
            a_higher_attempt_goes_on_counting
            a_lower_attempt_is_fenced_off
            a_viewer_that_leaves_disturbs_nobody
            a_waiting_viewer_is_woken_by_every_change
            a_resumed_viewer_gets_what_comes_strictly_after_its_cursor
            a_viewer_at_the_tail_gets_only_what_comes_next
            a_cursor_ahead_of_the_tail_is_a_gap_with_bounds
            a_cursor_of_an_attempt_yet_unknown_is_a_gap
            a_cursor_of_a_lost_attempt_resumes_where_the_newer_one_began
            a_cursor_of_an_attempt_that_is_gone_resumes_at_the_beginning
            a_cursor_below_what_is_kept_is_a_gap
            a_reader_that_is_overtaken_gets_a_gap_and_nothing_after_it
            an_unknown_run_gives_an_empty_stream
            the_end_comes_once_and_last
            every_kind_of_end_reaches_viewers_live_and_late
            an_error_goes_before_the_end
            nothing_is_published_after_the_end
            a_cancelled_stream_is_ended_for_good
            a_run_that_never_published_can_be_cancelled
            cancelling_an_ended_stream_changes_nothing
            cleanup_forgets_after_its_delay_and_spares_viewers_under_way
            closing_aborts_viewers_and_refuses_all_else
            silence_is_filled_with_heartbeats
            events_put_heartbeats_off
            a_stalled_viewer_is_cut_and_may_resume
            a_viewer_that_waits_for_the_producer_is_not_stalled
            a_viewer_that_is_not_polled_does_not_slow_the_producer
            a_stream_without_its_producer_is_given_up
            waiting_for_a_person_suspends_the_limit_on_silence
            a_run_that_is_longer_than_what_is_kept_is_replayed_whole
            a_reader_that_is_overtaken_misses_nothing
            cursors_in_the_log_are_judged_by_their_attempt
            where_the_log_refuses_what_is_beyond_the_limits_is_a_gap
            a_log_that_hangs_slows_nobody
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

/// A bridge with one run on it.
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

    /// Publishes `count` events and gives their ids.
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
        self.view_with(from, QUIET).await
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

/// The next item, or `None` at the end of the stream.
async fn next(view: &mut Subscription) -> Option<StreamItem> {
    let began = Instant::now();
    let item = tokio::time::timeout(PATIENCE, view.items.next())
        .await
        .expect("an item or the end should have come");
    // A time-out looks once more before it gives up: what is found only then came without waking its viewer.
    assert!(
        began.elapsed() < PATIENCE,
        "the viewer was not woken for {item:?}"
    );
    item
}

/// The next item, which must be an event.
async fn next_event(view: &mut Subscription) -> StreamEvent {
    match next(view).await {
        Some(StreamItem::Event(event)) => event,
        other => panic!("expected an event, got {other:?}"),
    }
}

/// The next `count` events.
async fn events(view: &mut Subscription, count: usize) -> Vec<StreamEvent> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(next_event(view).await);
    }
    taken
}

/// The ids of the next `count` events.
async fn ids(view: &mut Subscription, count: usize) -> Vec<EventId> {
    events(view, count)
        .await
        .iter()
        .map(|event| event.id)
        .collect()
}

/// Everything up to the end of the stream.
async fn rest(view: &mut Subscription) -> Vec<StreamItem> {
    let mut items = Vec::new();
    while let Some(item) = next(view).await {
        items.push(item);
    }
    items
}

/// Fails if an item is there, or comes without anything being published.
fn assert_silent(view: &mut Subscription) {
    let item = futures_util::FutureExt::now_or_never(view.items.next());
    assert!(item.is_none(), "expected silence, got {item:?}");
}
