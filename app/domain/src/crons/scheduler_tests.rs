//! Tests of firings with a manual clock.

use deerflow_core::clock::ManualClock;
use parking_lot::Mutex;
use serde_json::Map;

use super::*;
use crate::crons::{Created, InMemoryCronStore};

/// Records started crons, and fails if the test requests it.
#[derive(Debug, Default)]
struct Started {
    runs: Mutex<Vec<(Uuid, RunId)>>,
    refusal: Mutex<Option<StartError>>,
}

#[async_trait]
impl CronRunner for Started {
    async fn start(&self, cron: &Cron, run: RunId) -> Result<(), StartError> {
        self.runs.lock().push((cron.cron_id, run));
        self.refusal.lock().clone().map_or(Ok(()), Err)
    }
}

struct Rig {
    store: Arc<InMemoryCronStore>,
    started: Arc<Started>,
    clock: ManualClock,
}

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

impl Rig {
    /// It is 08:10, and the cron fires at every full hour.
    async fn new() -> (Self, Uuid) {
        let now = moment("2026-11-21T08:10:00Z");
        let clock = ManualClock::starting_at(now);
        let rig = Self {
            store: Arc::default(),
            started: Arc::default(),
            clock,
        };
        let cron = Cron {
            cron_id: Uuid::from_u128(7),
            user_id: "ann".to_owned(),
            assistant_id: "a".to_owned(),
            thread_id: None,
            schedule: "0 * * * *".to_owned(),
            timezone: None,
            end_time: Some(moment("2026-11-21T20:00:00Z")),
            on_run_completed: None,
            enabled: true,
            metadata: Map::new(),
            payload: Map::new(),
            next_run_date: Some(moment("2026-11-21T09:00:00Z")),
            created_at: now,
            updated_at: now,
        };
        assert_eq!(rig.store.create(cron, None).await, Ok(Created::New));
        (rig, Uuid::from_u128(7))
    }

    fn node(&self) -> Scheduler {
        Scheduler::new(
            self.store.clone(),
            self.started.clone(),
            Arc::new(self.clock.clone()),
        )
    }

    async fn poll(&self) -> usize {
        self.node().poll().await.unwrap();
        self.started.runs.lock().len()
    }

    async fn next(&self, cron: Uuid) -> Option<DateTime<Utc>> {
        self.store
            .get("ann", cron)
            .await
            .unwrap()
            .unwrap()
            .next_run_date
    }
}

#[tokio::test]
async fn due_cron_fires_once() {
    let (rig, cron) = Rig::new().await;
    assert_eq!(rig.poll().await, 0);
    rig.clock.advance(TimeDelta::minutes(50));
    for _ in 0..3 {
        assert_eq!(rig.poll().await, 1);
    }
    assert_eq!(rig.next(cron).await, Some(moment("2026-11-21T10:00:00Z")));
}

#[tokio::test]
async fn missed_times_fire_once_and_stop_at_end() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(5));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.next(cron).await, Some(moment("2026-11-21T14:00:00Z")));
    rig.clock.advance(TimeDelta::days(30));
    assert_eq!((rig.poll().await, rig.next(cron).await), (1, None));
    assert_eq!(rig.poll().await, 1);
}

#[tokio::test]
async fn firing_at_end_time_runs_after_late_poll() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(11));
    assert_eq!(
        (rig.poll().await, rig.next(cron).await),
        (1, Some(moment("2026-11-21T20:00:00Z")))
    );
    rig.clock.advance(TimeDelta::minutes(51));
    assert_eq!((rig.poll().await, rig.next(cron).await), (2, None));
}

#[tokio::test]
async fn lost_firing_of_disabled_cron_is_dropped() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::minutes(50));
    let due = rig
        .store
        .due(rig.clock.now(), rig.clock.now(), 9)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(rig.store.claim(&due, None, rig.clock.now()).await, Ok(true));
    let stored = rig.store.get("ann", cron).await.unwrap().unwrap();
    let seen = stored.updated_at;
    assert_eq!(
        rig.store
            .update(
                Cron {
                    enabled: false,
                    ..stored
                },
                seen,
                false
            )
            .await,
        Ok(true)
    );
    for _ in 0..2 {
        rig.clock.advance(TimeDelta::minutes(2));
        assert_eq!(rig.poll().await, 0);
    }
    assert_eq!(
        rig.store.due(rig.clock.now(), rig.clock.now(), 9).await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn concurrent_nodes_start_one_run() {
    let (rig, _) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(1));
    let nodes: Vec<Scheduler> = (0..8).map(|_| rig.node()).collect();
    for polled in futures_util::future::join_all(nodes.iter().map(Scheduler::poll)).await {
        polled.unwrap();
    }
    assert_eq!(rig.started.runs.lock().len(), 1);
}

#[tokio::test]
async fn refused_start_is_not_retried_and_cron_continues() {
    let (rig, _) = Rig::new().await;
    *rig.started.refusal.lock() = Some(StartError::Refused("no such assistant".to_owned()));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.poll().await, 1);
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.poll().await, 1);
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.poll().await, 2);
}

#[tokio::test]
async fn unfinished_firing_is_taken_over_as_same_run() {
    let (rig, _) = Rig::new().await;
    *rig.started.refusal.lock() = Some(StartError::Unavailable("the store is away".to_owned()));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.poll().await, 1);
    *rig.started.refusal.lock() = None;
    rig.clock.advance(TimeDelta::seconds(30));
    assert_eq!(rig.poll().await, 1);
    rig.clock.advance(TimeDelta::seconds(40));
    for _ in 0..2 {
        assert_eq!(rig.poll().await, 2);
    }
    let runs = rig.started.runs.lock().clone();
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn scheduler_polls_until_stopped() {
    let (rig, _) = Rig::new().await;
    let stop = CancellationToken::new();
    let running = rig.node().run(stop.clone());
    let script = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(rig.started.runs.lock().is_empty());
        rig.clock.advance(TimeDelta::hours(1));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.started.runs.lock().len(), 1);
        stop.cancel();
    };
    tokio::join!(running, script);
}
