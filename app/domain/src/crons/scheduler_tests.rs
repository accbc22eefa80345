//! Firings over a clock that tests move.

use harness::clock::ManualClock;
use parking_lot::Mutex;
use serde_json::Map;

use super::*;
use crate::crons::{Created, MemoryCronStore};

/// Remembers what was started, and refuses as it is told.
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
    store: Arc<MemoryCronStore>,
    started: Arc<Started>,
    clock: ManualClock,
}

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

impl Rig {
    /// It is ten past eight, and the cron fires at every full hour.
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

    async fn look(&self) -> usize {
        self.node().look().await.unwrap();
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
async fn a_cron_fires_when_its_time_has_come_and_once() {
    let (rig, cron) = Rig::new().await;
    assert_eq!(rig.look().await, 0);
    rig.clock.advance(TimeDelta::minutes(50));
    for _ in 0..3 {
        assert_eq!(rig.look().await, 1);
    }
    assert_eq!(rig.next(cron).await, Some(moment("2026-11-21T10:00:00Z")));
}

#[tokio::test]
async fn times_that_were_missed_fire_once_and_the_end_ends_it() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(5));
    assert_eq!(rig.look().await, 1);
    assert_eq!(rig.next(cron).await, Some(moment("2026-11-21T14:00:00Z")));
    rig.clock.advance(TimeDelta::days(30));
    assert_eq!((rig.look().await, rig.next(cron).await), (1, None));
    assert_eq!(rig.look().await, 1);
}

#[tokio::test]
async fn the_last_time_is_the_end_itself_though_nobody_looks_at_that_very_moment() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(11));
    assert_eq!(
        (rig.look().await, rig.next(cron).await),
        (1, Some(moment("2026-11-21T20:00:00Z")))
    );
    rig.clock.advance(TimeDelta::minutes(51));
    assert_eq!((rig.look().await, rig.next(cron).await), (2, None));
}

#[tokio::test]
async fn a_lost_firing_is_dropped_when_its_cron_was_switched_off_meanwhile() {
    let (rig, cron) = Rig::new().await;
    rig.clock.advance(TimeDelta::minutes(50));
    let due = rig
        .store
        .due(rig.clock.now(), rig.clock.now(), 9)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(rig.store.take(&due, None, rig.clock.now()).await, Ok(true));
    let held = rig.store.get("ann", cron).await.unwrap().unwrap();
    let seen = held.updated_at;
    assert_eq!(
        rig.store
            .update(
                Cron {
                    enabled: false,
                    ..held
                },
                seen,
                false
            )
            .await,
        Ok(true)
    );
    for _ in 0..2 {
        rig.clock.advance(TimeDelta::minutes(2));
        assert_eq!(rig.look().await, 0);
    }
    assert_eq!(
        rig.store.due(rig.clock.now(), rig.clock.now(), 9).await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn many_nodes_start_one_run() {
    let (rig, _) = Rig::new().await;
    rig.clock.advance(TimeDelta::hours(1));
    let nodes: Vec<Scheduler> = (0..8).map(|_| rig.node()).collect();
    for looked in futures_util::future::join_all(nodes.iter().map(Scheduler::look)).await {
        looked.unwrap();
    }
    assert_eq!(rig.started.runs.lock().len(), 1);
}

#[tokio::test]
async fn a_run_that_cannot_be_made_is_not_tried_again_but_the_cron_goes_on() {
    let (rig, _) = Rig::new().await;
    *rig.started.refusal.lock() = Some(StartError::Refused("no such assistant".to_owned()));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.look().await, 1);
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.look().await, 1);
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.look().await, 2);
}

#[tokio::test]
async fn a_firing_that_nobody_finished_is_taken_over_as_the_same_run() {
    let (rig, _) = Rig::new().await;
    *rig.started.refusal.lock() = Some(StartError::Unavailable("the store is away".to_owned()));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.look().await, 1);
    *rig.started.refusal.lock() = None;
    rig.clock.advance(TimeDelta::seconds(30));
    assert_eq!(rig.look().await, 1);
    rig.clock.advance(TimeDelta::seconds(40));
    for _ in 0..2 {
        assert_eq!(rig.look().await, 2);
    }
    let runs = rig.started.runs.lock().clone();
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn the_service_looks_again_and_again_until_it_is_stopped() {
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
