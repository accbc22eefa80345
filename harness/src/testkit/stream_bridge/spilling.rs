//! What is beyond the limits of a run goes to a durable log, and viewers notice nothing.

use std::time::Duration;

use super::*;
use crate::runtime::memory::MemoryStores;
use crate::runtime::runs::store::{RunCreateStore, StoreError};
use crate::runtime::stream_bridge::{
    END_SENTINEL, Gap, LogBatch, LogOutline, LogPage, ResumeResult, StreamLogError,
};
use crate::testkit::new_run;

const KEPT: usize = 100;
const MOMENT: Duration = Duration::from_millis(20);

impl Scene {
    /// A bridge that keeps little of a run beside a log that knows it.
    async fn beside_a_log(factory: &dyn StreamBridgeFactory) -> (Self, Arc<MemoryStores>) {
        let log = Arc::new(MemoryStores::new());
        log.create_run("run-1").await;
        let limits = TestLimits {
            max_events: KEPT,
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

    /// Publishes at the pace of somebody who watches, who takes a moment for it.
    async fn publish_watched(&self, attempt: u32, count: usize, view: &mut Subscription) {
        for _ in 0..count / 50 {
            let published = self.publish(attempt, 50).await;
            assert_eq!(ids(view, 50).await, published);
            tokio::time::sleep(MOMENT).await;
        }
    }
}

impl MemoryStores {
    async fn create_run(&self, id: &str) {
        self.admit(new_run(id, "thread-1")).await.expect("admitted");
    }
}

/// Live and after its end, from its first event and from any other.
pub async fn a_run_that_is_longer_than_what_is_kept_is_replayed_whole(
    factory: &dyn StreamBridgeFactory,
) {
    let (scene, log) = Scene::beside_a_log(factory).await;
    scene.publish(1, 1).await;
    let mut watches = scene.view(ResumeFrom::After(id(1, 1))).await;
    scene.publish_watched(1, 1_000, &mut watches).await;
    let mut live = scene.view(ResumeFrom::Start).await;
    assert_eq!(live.resume, ResumeResult::From(1));
    assert_eq!(
        ids(&mut live, 1_001).await,
        (1..=1_001).map(|seq| id(seq, 1)).collect::<Vec<_>>()
    );
    assert!(
        log.outline(&scene.run).await.expect("read").tail() >= 300,
        "little is kept elsewhere"
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

/// What it did not read in time it reads later.
pub async fn a_reader_that_is_overtaken_misses_nothing(factory: &dyn StreamBridgeFactory) {
    let (scene, _log) = Scene::beside_a_log(factory).await;
    scene.publish(1, 2).await;
    let mut slow = scene.view(ResumeFrom::Start).await;
    assert_eq!(ids(&mut slow, 2).await, [id(1, 1), id(2, 1)]);
    let mut watches = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(1, 1_000, &mut watches).await;
    assert_eq!(
        ids(&mut slow, 1_000).await,
        (3..=1_002).map(|seq| id(seq, 1)).collect::<Vec<_>>()
    );
    scene.publish(1, 1).await;
    assert_eq!(next_event(&mut slow).await.id, id(1_003, 1));
}

/// As in what is kept.
pub async fn cursors_in_the_log_are_judged_by_their_attempt(factory: &dyn StreamBridgeFactory) {
    let (scene, _log) = Scene::beside_a_log(factory).await;
    scene.publish(1, 300).await;
    scene.publish(2, 1).await;
    let mut watches = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(2, 1_000, &mut watches).await;
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

/// It is the last resort, not a condition.
pub async fn where_the_log_refuses_what_is_beyond_the_limits_is_a_gap(
    factory: &dyn StreamBridgeFactory,
) {
    let log = Arc::new(MemoryStores::new());
    let limits = TestLimits {
        max_events: KEPT,
        ..TestLimits::default()
    };
    let scene = Scene {
        bridge: factory.open_with_log(limits, log).await,
        run: run_id("unknown"),
    };
    scene.publish(1, 1).await;
    let mut watches = scene.view(ResumeFrom::Tail).await;
    scene.publish_watched(1, 1_000, &mut watches).await;
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

/// Its events are told without delay: who publishes waits for no log.
pub async fn a_log_that_hangs_slows_nobody(factory: &dyn StreamBridgeFactory) {
    let limits = TestLimits {
        max_events: KEPT,
        ..TestLimits::default()
    };
    let scene = Scene {
        bridge: factory.open_with_log(limits, Arc::new(Hangs)).await,
        run: run_id("run-1"),
    };
    let work = async {
        scene.publish(1, 1).await;
        let mut watches = scene.view(ResumeFrom::Tail).await;
        scene.publish_watched(1, 2_000, &mut watches).await;
        scene
            .bridge
            .publish_end(&scene.key(1))
            .await
            .expect("ended");
        assert_eq!(rest(&mut watches).await, [END_SENTINEL]);
    };
    tokio::time::timeout(Duration::from_secs(30), work)
        .await
        .expect("nobody waits for the log");
}

/// A log that never answers.
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
