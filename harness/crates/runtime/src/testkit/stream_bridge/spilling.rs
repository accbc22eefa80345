//! Contract of spilling: events beyond the limits of a run go to a durable log, transparently for
//! viewers.

use std::time::Duration;

use super::*;
use crate::in_memory::InMemoryStores;
use crate::runs::store::{RunCreateStore, StoreError};
use crate::stream_bridge::{
    END_SENTINEL, Gap, LogBatch, LogOutline, LogPage, ResumeResult, StreamLogError,
};
use crate::testkit::new_run;

const RETAINED: usize = 100;
const PUBLISH_PAUSE: Duration = Duration::from_millis(20);

impl Scene {
    /// Opens a bridge with small limits over a durable log that knows the run.
    async fn with_durable_log(factory: &dyn StreamBridgeFactory) -> (Self, Arc<InMemoryStores>) {
        let log = Arc::new(InMemoryStores::new());
        log.create_run("run-1").await;
        let limits = TestLimits {
            max_events: RETAINED,
            ..TestLimits::default()
        };
        (
            Self {
                bridge: factory.open_with_log(limits, log.clone()).await,
                run: run_id("run-1"),
            },
            log,
        )
    }

    /// Publishes events while a viewer reads them.
    async fn publish_watched(&self, attempt: u32, count: usize, view: &mut Subscription) {
        for _ in 0..count / 50 {
            let published = self.publish(attempt, 50).await;
            assert_eq!(ids(view, 50).await, published);
            tokio::time::sleep(PUBLISH_PAUSE).await;
        }
    }
}

impl InMemoryStores {
    async fn create_run(&self, id: &str) {
        self.admit(new_run(id, "thread-1")).await.expect("admitted");
    }
}

/// The replay is complete during the run and after its end, from the first event and from any
/// cursor.
pub async fn run_beyond_limits_is_replayed_completely(factory: &dyn StreamBridgeFactory) {
    let (scene, log) = Scene::with_durable_log(factory).await;
    scene.publish(1, 1).await;
    let mut watching = scene.view(ResumeFrom::After(id(1, 1))).await;
    scene.publish_watched(1, 1_000, &mut watching).await;
    let mut live = scene.view(ResumeFrom::Start).await;
    assert_eq!(live.resume, ResumeResult::From(1));
    assert_eq!(
        ids(&mut live, 1_001).await,
        (1..=1_001).map(|seq| id(seq, 1)).collect::<Vec<_>>()
    );
    assert!(
        log.outline(&scene.run).await.expect("read").tail() >= 300,
        "events beyond the limits are elsewhere"
    );
    scene.end().await;
    let mut late = scene.view(ResumeFrom::Start).await;
    let seen = rest(&mut late).await;
    assert_eq!((seen.len(), seen.last()), (1_002, Some(&END_SENTINEL)));
    for cursor in [1, 257, 640, 1_000] {
        let mut resumed = scene.view(ResumeFrom::After(id(cursor, 1))).await;
        assert_eq!(
            rest(&mut resumed).await,
            seen[usize::try_from(cursor).expect("small")..],
            "after {cursor}"
        );
    }
    assert_eq!(rest(&mut live).await, [END_SENTINEL]);
}

/// Events that it missed in memory are read from the log.
pub async fn overtaken_reader_reads_from_durable_log(factory: &dyn StreamBridgeFactory) {
    let (scene, _log) = Scene::with_durable_log(factory).await;
    scene.publish(1, 2).await;
    let mut slow = scene.view(ResumeFrom::Start).await;
    assert_eq!(ids(&mut slow, 2).await, [id(1, 1), id(2, 1)]);
    let mut watching = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(1, 1_000, &mut watching).await;
    assert_eq!(
        ids(&mut slow, 1_000).await,
        (3..=1_002).map(|seq| id(seq, 1)).collect::<Vec<_>>()
    );
    scene.publish(1, 1).await;
    assert_eq!(next_event(&mut slow).await.id, id(1_003, 1));
}

/// Cursors in the log are resolved in the same way as cursors in memory.
pub async fn cursors_in_durable_log_respect_attempts(factory: &dyn StreamBridgeFactory) {
    let (scene, _log) = Scene::with_durable_log(factory).await;
    scene.publish(1, 300).await;
    scene.publish(2, 1).await;
    let mut watching = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(2, 1_000, &mut watching).await;
    for (cursor, first) in [
        (id(200, 1), 201),
        (id(310, 1), 301),
        (id(300, 1), 301),
        (id(320, 2), 321),
    ] {
        let mut view = scene.view(ResumeFrom::After(cursor)).await;
        assert_eq!(next_event(&mut view).await.id.seq, first, "after {cursor}");
    }
    let mut ahead = scene.view(ResumeFrom::After(id(2_000, 2))).await;
    assert!(matches!(rest(&mut ahead).await[..], [StreamItem::Gap(_)]));
    let mut unknown = scene.view(ResumeFrom::After(id(200, 2))).await;
    assert!(matches!(rest(&mut unknown).await[..], [StreamItem::Gap(_)]));
}

/// The durable log is a fallback, not a requirement.
pub async fn events_rejected_by_durable_log_become_a_gap(factory: &dyn StreamBridgeFactory) {
    let log = Arc::new(InMemoryStores::new());
    let limits = TestLimits {
        max_events: RETAINED,
        ..TestLimits::default()
    };
    let scene = Scene {
        bridge: factory.open_with_log(limits, log).await,
        run: run_id("unknown"),
    };
    scene.publish(1, 1).await;
    let mut watching = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(1, 1_000, &mut watching).await;
    scene.end().await;
    let mut late = scene.view(ResumeFrom::Start).await;
    let seen = rest(&mut late).await;
    let [
        StreamItem::Gap(Gap {
            earliest_available_event_id,
            latest_available_event_id,
            ..
        }),
    ] = &seen[..]
    else {
        panic!("{seen:?}")
    };
    let first: EventId = earliest_available_event_id.parse().expect("an id");
    assert!(first.seq > 800, "{first}");
    assert_eq!(*latest_available_event_id, "1001-1");
    let mut resumed = scene.view(ResumeFrom::After(id(first.seq, 1))).await;
    assert_eq!(next_event(&mut resumed).await.id.seq, first.seq + 1);
}

/// Its events are delivered without delay: a publish does not wait for the log.
pub async fn hanging_durable_log_slows_no_viewer(factory: &dyn StreamBridgeFactory) {
    let limits = TestLimits {
        max_events: RETAINED,
        ..TestLimits::default()
    };
    let scene = Scene {
        bridge: factory.open_with_log(limits, Arc::new(Hangs)).await,
        run: run_id("run-1"),
    };
    let work = async {
        scene.publish(1, 1).await;
        let mut watching = scene.view(ResumeFrom::Tail).await;
        scene.publish_watched(1, 2_000, &mut watching).await;
        scene
            .bridge
            .publish_end(&scene.key(1))
            .await
            .expect("ended");
        assert_eq!(rest(&mut watching).await, [END_SENTINEL]);
    };
    tokio::time::timeout(Duration::from_secs(30), work)
        .await
        .expect("no publish waits for the log");
}

/// A durable log whose calls never return.
#[derive(Debug)]
struct Hangs;

#[async_trait]
impl StreamLog for Hangs {
    async fn append(&self, _: LogBatch) -> Result<(), StreamLogError> {
        std::future::pending().await
    }

    async fn read(&self, _: &RunId, _: u64, _: usize) -> Result<LogPage, StoreError> {
        std::future::pending().await
    }

    async fn outline(&self, _: &RunId) -> Result<LogOutline, StoreError> {
        std::future::pending().await
    }

    async fn forget(&self, _: &RunId) -> Result<(), StoreError> {
        std::future::pending().await
    }
}
