//! What upkeep may rely on.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use harness::clock::{Clock, ManualClock};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{Made, NewRun, RequestKey, RunCommit, RunEnd, WebhookCall};
use harness::testkit::requests::key;
use harness::testkit::{RunStores, all_events, at, at_once, commit_of, end_in, event, new_run, run, thread};

use crate::upkeep::{Forgotten, Retention, Upkeep, UpkeepStore};

/// One test per promise of upkeep.
#[macro_export]
macro_rules! upkeep_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::upkeep]
            a_duty_is_one_holders_until_it_ends
            journals_go_that_are_old_and_whose_runs_are_over
            a_look_forgets_what_is_over_and_nothing_else
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
    assert!(stores.upkeep.take_duty("other", "n9", long).await.expect("asked"));
    assert!(take(holder, Duration::ZERO).await);
    assert!(take("n9".to_owned(), long).await);
}

async fn ended(stores: &RunStores, id: &str, on: &str, after: TimeDelta, webhook: bool) {
    let made = stores.create.admit(new_run(id, on)).await.expect("admitted").run;
    let call = WebhookCall { url: "http://h.test/".to_owned(), started_at: at(0), values: None, error: None };
    let end = RunEnd { webhook: webhook.then_some(call), ..end_in(RunStatus::Error) };
    let events = (0..3).map(|n| event(on, id, &n.to_string())).collect();
    stores.commit.commit(RunCommit { end: Some(end), events, at: at(0) + after, ..commit_of(&made) }).await.expect("ended");
}

async fn rows(stores: &RunStores, on: &str) -> usize {
    stores.events.list(&thread(on), &all_events(), &Owner::None).await.expect("read").len()
}

/// In steps.
pub async fn journals_go_that_are_old_and_whose_runs_are_over(open: impl AsyncFn() -> UpkeepStores) {
    let UpkeepStores { upkeep, runs } = open().await;
    ended(&runs, "r1", "t1", TimeDelta::days(1), false).await;
    ended(&runs, "r2", "t1", TimeDelta::days(3), false).await;
    let working = runs.create.admit(new_run("r3", "t2")).await.expect("admitted").run;
    let events = vec![event("t2", "r3", "x")];
    runs.commit.commit(RunCommit { events, ..commit_of(&working) }).await.expect("written");
    let before = at(0) + TimeDelta::days(2);
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(2));
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(1));
    assert_eq!(upkeep.forget_events(before, 2).await, Ok(0));
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 1));
    assert!(runs.query.get(&run("r1"), &Owner::None).await.expect("read").is_some());
}

/// By its rules: without one for journals they stay.
pub async fn a_look_forgets_what_is_over_and_nothing_else(open: impl AsyncFn() -> UpkeepStores) {
    let UpkeepStores { upkeep, runs } = open().await;
    for n in 0..450 {
        runs.requests.keep(&key(&n.to_string()), Made::Thread(thread("t")), at(0)).await.expect("kept");
    }
    let later = RequestKey { expires_at: at(0) + TimeDelta::days(99), ..key("later") };
    let kept = NewRun { request: Some(later.clone()), ..new_run("r0", "t0") };
    runs.create.admit(kept).await.expect("admitted");
    ended(&runs, "r1", "t1", TimeDelta::days(1), true).await;
    ended(&runs, "r2", "t2", TimeDelta::days(1), true).await;
    runs.webhooks.failed(&[run("r1")], "no", None, at(0) + TimeDelta::days(2)).await.expect("written");
    let clock = ManualClock::starting_at(at(0) + TimeDelta::days(20));
    let look = Upkeep {
        store: upkeep.clone(),
        requests: runs.requests.clone(),
        outbox: runs.webhooks.clone(),
        clock: Arc::new(clock.clone()),
        holder: "n1".to_owned(),
    };
    let mut rules = Retention { dead_letters: TimeDelta::days(14), run_events: None };
    assert_eq!(upkeep.take_duty("upkeep", "n2", Duration::from_secs(600)).await, Ok(true));
    assert_eq!(look.look(rules).await, Ok(None));
    assert_eq!(upkeep.take_duty("upkeep", "n2", Duration::ZERO).await, Ok(true));
    assert_eq!(look.look(rules).await, Ok(Some(Forgotten { requests: 450, letters: 1, events: 0 })));
    assert_eq!(runs.webhooks.letters(false, 9).await.map(|letters| letters.len()), Ok(1));
    assert!(runs.requests.known(&later, clock.now()).await.expect("read").is_some());
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 3));
    rules.run_events = Some(TimeDelta::days(5));
    assert_eq!(look.look(rules).await, Ok(Some(Forgotten { requests: 0, letters: 0, events: 6 })));
}
