//! What upkeep may rely on.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use harness::clock::{Clock, ManualClock};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::HistoryQuery;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{Made, NewRun, RequestKey, RunCommit, RunEnd, WebhookCall};
use harness::state::ThreadState;
use harness::testkit::requests::key;
use harness::testkit::stream_log::batch;
use harness::testkit::{
    RunStores, all_events, at, at_once, checkpoint_write, commit_of, end_in, event, new_run, run,
    thread,
};

use crate::upkeep::{ChangedThread, Forgotten, HistoryRule, Retention, Upkeep, UpkeepStore};

/// One test per promise of upkeep.
#[macro_export]
macro_rules! upkeep_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::upkeep]
            a_duty_is_one_holders_until_it_ends
            journals_go_that_are_old_and_whose_runs_are_over
            streams_go_that_are_old_and_whose_runs_are_over
            a_look_forgets_what_is_over_and_nothing_else
            a_walk_meets_threads_in_the_order_of_their_changes
            histories_go_by_their_rule_and_are_met_again_when_they_change
        }
    };
}

/// The ports of upkeep over one store.
#[derive(Debug, Clone)]
pub struct UpkeepStores {
    /// Upkeep's own.
    pub upkeep: Arc<dyn UpkeepStore>,
    /// The others.
    pub runs: RunStores,
}

/// Of many who ask at once one gets it, and it may ask again.
pub async fn a_duty_is_one_holders_until_it_ends(open: impl AsyncFn() -> UpkeepStores) {
    let stores = open().await;
    let take = |holder: String, ttl: Duration| {
        let upkeep = stores.upkeep.clone();
        async move { upkeep.take_duty("d", &holder, ttl).await.expect("asked") }
    };
    let long = Duration::from_secs(600);
    let taken = at_once((0..8).map(|n| take(format!("n{n}"), long))).await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    let holder = format!("n{}", taken.iter().position(|taken| *taken).expect("one"));
    assert!(take(holder.clone(), long).await);
    assert!(
        stores
            .upkeep
            .take_duty("other", "n9", long)
            .await
            .expect("asked")
    );
    assert!(take(holder, Duration::ZERO).await);
    assert!(take("n9".to_owned(), long).await);
}

async fn ended(stores: &RunStores, id: &str, on: &str, after: TimeDelta, webhook: bool) {
    let made = stores
        .create
        .admit(new_run(id, on))
        .await
        .expect("admitted")
        .run;
    let call = WebhookCall {
        url: "http://h.test/".to_owned(),
        started_at: at(0),
        values: None,
        error: None,
    };
    let end = RunEnd {
        webhook: webhook.then_some(call),
        ..end_in(RunStatus::Error)
    };
    let events = (0..3).map(|n| event(on, id, &n.to_string())).collect();
    stores
        .commit
        .commit(RunCommit {
            end: Some(end),
            events,
            at: at(0) + after,
            ..commit_of(&made)
        })
        .await
        .expect("ended");
}

async fn rows(stores: &RunStores, on: &str) -> usize {
    stores
        .events
        .list(&thread(on), &all_events(), &Owner::None)
        .await
        .expect("read")
        .len()
}

/// In steps.
pub async fn journals_go_that_are_old_and_whose_runs_are_over(
    open: impl AsyncFn() -> UpkeepStores,
) {
    let UpkeepStores { upkeep, runs } = open().await;
    ended(&runs, "r1", "t1", TimeDelta::days(1), false).await;
    ended(&runs, "r2", "t1", TimeDelta::days(3), false).await;
    let working = runs
        .create
        .admit(new_run("r3", "t2"))
        .await
        .expect("admitted")
        .run;
    let events = vec![event("t2", "r3", "x")];
    runs.commit
        .commit(RunCommit {
            events,
            ..commit_of(&working)
        })
        .await
        .expect("written");
    let before = at(0) + TimeDelta::days(2);
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(2));
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(1));
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(0));
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 1));
    assert!(
        runs.query
            .get(&run("r1"), &Owner::None)
            .await
            .expect("read")
            .is_some()
    );
}

/// In steps.
pub async fn streams_go_that_are_old_and_whose_runs_are_over(open: impl AsyncFn() -> UpkeepStores) {
    let UpkeepStores { upkeep, runs } = open().await;
    ended(&runs, "r1", "t1", TimeDelta::days(1), false).await;
    ended(&runs, "r2", "t1", TimeDelta::days(3), false).await;
    runs.create
        .admit(new_run("r3", "t2"))
        .await
        .expect("admitted");
    for id in ["r1", "r2", "r3"] {
        for first in [1, 6, 11] {
            runs.streams
                .append(batch(id, 1, first..=first + 4))
                .await
                .expect("appended");
        }
    }
    let before = at(0) + TimeDelta::days(2);
    for gone in [2, 1, 0] {
        assert_eq!(upkeep.forget_streams(before, 2).await, Ok(gone));
    }
    for (id, left) in [("r1", 0), ("r2", 15), ("r3", 15)] {
        assert_eq!(
            runs.streams.outline(&run(id)).await.expect("read").tail(),
            left,
            "{id}"
        );
    }
}

/// By its rules: without one for journals they stay.
pub async fn a_look_forgets_what_is_over_and_nothing_else(open: impl AsyncFn() -> UpkeepStores) {
    let UpkeepStores { upkeep, runs } = open().await;
    for n in 0..450 {
        runs.requests
            .keep(&key(&n.to_string()), Made::Thread(thread("t")), at(0))
            .await
            .expect("kept");
    }
    let later = RequestKey {
        expires_at: at(0) + TimeDelta::days(99),
        ..key("later")
    };
    let kept = NewRun {
        request: Some(later.clone()),
        ..new_run("r0", "t0")
    };
    runs.create.admit(kept).await.expect("admitted");
    ended(&runs, "r1", "t1", TimeDelta::days(1), true).await;
    ended(&runs, "r2", "t2", TimeDelta::days(1), true).await;
    runs.streams
        .append(batch("r1", 1, 1..=3))
        .await
        .expect("appended");
    runs.webhooks
        .failed(&[run("r1")], "no", None, at(0) + TimeDelta::days(2))
        .await
        .expect("written");
    let clock = ManualClock::starting_at(at(0) + TimeDelta::days(20));
    let look = Upkeep {
        store: upkeep.clone(),
        requests: runs.requests.clone(),
        outbox: runs.webhooks.clone(),
        checkpoints: runs.checkpoints.clone(),
        clock: Arc::new(clock.clone()),
        holder: "n1".to_owned(),
    };
    let mut rules = Retention {
        dead_letters: TimeDelta::days(14),
        streams: TimeDelta::days(5),
        run_events: None,
        histories: None,
    };
    assert_eq!(
        upkeep
            .take_duty("upkeep", "n2", Duration::from_secs(600))
            .await,
        Ok(true)
    );
    assert_eq!(look.look(rules).await, Ok(None));
    assert_eq!(
        upkeep.take_duty("upkeep", "n2", Duration::ZERO).await,
        Ok(true)
    );
    assert_eq!(
        look.look(rules).await,
        Ok(Some(Forgotten {
            requests: 450,
            letters: 1,
            batches: 1,
            ..Forgotten::default()
        }))
    );
    assert_eq!(
        runs.webhooks
            .letters(false, 9)
            .await
            .map(|letters| letters.len()),
        Ok(1)
    );
    assert!(
        runs.requests
            .known(&later, clock.now())
            .await
            .expect("read")
            .is_some()
    );
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 3));
    rules.run_events = Some(TimeDelta::days(5));
    assert_eq!(
        look.look(rules).await,
        Ok(Some(Forgotten {
            events: 6,
            ..Forgotten::default()
        }))
    );
}

/// From behind where it has come, each walk for itself.
pub async fn a_walk_meets_threads_in_the_order_of_their_changes(
    open: impl AsyncFn() -> UpkeepStores,
) {
    let UpkeepStores { upkeep, runs } = open().await;
    for (n, on) in [(3, "a"), (1, "b"), (2, "c"), (2, "d"), (9, "e")] {
        ended(&runs, &format!("r-{on}"), on, TimeDelta::days(n), false).await;
    }
    let until = at(0) + TimeDelta::days(5);
    let met = async |walk: &str, most| {
        upkeep
            .changed_threads(walk, until, most)
            .await
            .expect("read")
    };
    let names = |met: &[ChangedThread]| {
        met.iter()
            .map(|met| met.thread.to_string())
            .collect::<Vec<_>>()
    };
    let first = met("w", 2).await;
    assert_eq!(
        (names(&first), first[1].at),
        (
            vec!["b".to_owned(), "c".to_owned()],
            at(0) + TimeDelta::days(2)
        )
    );
    upkeep.note_walked("w", &first[1]).await.expect("noted");
    let second = met("w", 9).await;
    assert_eq!(names(&second), ["d", "a"]);
    upkeep.note_walked("w", &second[1]).await.expect("noted");
    assert_eq!(
        (met("w", 9).await, names(&met("v", 1).await)),
        (vec![], vec!["b".to_owned()])
    );
}

/// A run with so many checkpoints, made at `day`, numbered from `first` on.
async fn run_of(runs: &RunStores, id: &str, on: &str, day: i64, numbers: RangeInclusive<u64>) {
    let made = runs
        .create
        .admit(new_run(id, on))
        .await
        .expect("admitted")
        .run;
    let moment = at(0) + TimeDelta::days(day);
    let checkpoints = numbers.map(|n| {
        let mut write = checkpoint_write(on, Some(id), n, &mut ThreadState::default(), &mut 0);
        write.meta.created_at = moment;
        write
    });
    let checkpoints = checkpoints.collect();
    runs.commit
        .commit(RunCommit {
            checkpoints,
            end: Some(end_in(RunStatus::Error)),
            at: moment,
            ..commit_of(&made)
        })
        .await
        .expect("ended");
}

async fn left(runs: &RunStores, on: &str) -> Vec<i64> {
    let query = HistoryQuery {
        limit: 1_000,
        ..HistoryQuery::default()
    };
    let metas = runs
        .checkpoints
        .list_meta(&thread(on), &query)
        .await
        .expect("read");
    metas.into_iter().map(|meta| meta.step).rev().collect()
}

/// Whatever the number of threads and checkpoints.
pub async fn histories_go_by_their_rule_and_are_met_again_when_they_change(
    open: impl AsyncFn() -> UpkeepStores,
) {
    let UpkeepStores { upkeep, runs } = open().await;
    run_of(&runs, "r1", "long", 1, 1..=450).await;
    for n in 0..120 {
        run_of(&runs, &format!("s{n}"), &format!("t{n}"), 2, 1..=4).await;
    }
    let clock = ManualClock::starting_at(at(0) + TimeDelta::days(10));
    let look = Upkeep {
        store: upkeep,
        requests: runs.requests.clone(),
        outbox: runs.webhooks.clone(),
        checkpoints: runs.checkpoints.clone(),
        clock: Arc::new(clock.clone()),
        holder: "n1".to_owned(),
    };
    let long = TimeDelta::days(9_999);
    let rules = |newest, days| Retention {
        dead_letters: long,
        streams: long,
        run_events: None,
        histories: Some(HistoryRule { newest, days }),
    };
    let gone = |checkpoints| {
        Ok(Some(Forgotten {
            checkpoints,
            ..Forgotten::default()
        }))
    };
    assert_eq!(
        look.look(rules(2, Some(30))).await,
        gone(0),
        "all are young"
    );
    assert_eq!(look.look(rules(2, None)).await, gone(447 + 120));
    assert_eq!(
        (left(&runs, "long").await, left(&runs, "t7").await),
        (vec![448, 449, 450], vec![2, 3, 4])
    );
    assert_eq!(look.look(rules(2, None)).await, gone(0));
    run_of(&runs, "r2", "t7", 9, 5..=6).await;
    assert_eq!(look.look(rules(2, None)).await, gone(2));
    assert_eq!(left(&runs, "t7").await, [4, 5, 6]);
    // By their age: at a change, or when a thread was left alone for so long.
    assert_eq!(look.look(rules(1, Some(5))).await, gone(1 + 119));
    assert_eq!(
        (left(&runs, "t7").await, left(&runs, "t8").await),
        (vec![4, 5, 6], vec![3, 4])
    );
    clock.advance(TimeDelta::days(5));
    assert_eq!(look.look(rules(1, Some(5))).await, gone(1));
    assert_eq!(left(&runs, "t7").await, [5, 6]);
}
