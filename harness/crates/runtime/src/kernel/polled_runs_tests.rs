//! Tests of the numbers of polls.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::*;
use crate::testkit::run;

fn polled(attempt: u32) -> PolledRun {
    let thread = ThreadId::parse("t1").unwrap();
    PolledRun::new(run("r1"), thread, attempt, ActiveRun::new())
}

#[test]
fn poll_is_stalled_until_it_returns() {
    let runs = PolledRuns::default();
    let of_work = runs.clone();
    let work = poll_fn(move |_| {
        let [run] = of_work.all().try_into().expect("one attempt");
        let poll = run.current_poll().expect("a poll");
        assert!(!run.is_stalled());
        run.mark_stalled(poll);
        assert_eq!((run.is_stalled(), of_work.stalled_count()), (true, 1));
        assert!(of_work.is_stalled(&run.run_id));
        std::task::Poll::<()>::Pending
    });
    let mut task = Box::pin(runs.observe(polled(1), work));
    for _ in 0..2 {
        assert!((&mut task).now_or_never().is_none());
        assert_eq!(runs.all()[0].current_poll(), None);
        assert_eq!(
            (runs.stalled_count(), runs.is_stalled(&run("r1"))),
            (0, false)
        );
    }
    drop(task);
    assert!(runs.all().is_empty());
}

#[test]
fn poll_that_panics_has_returned() {
    let runs = PolledRuns::default();
    let mut task = Box::pin(runs.observe(polled(1), async { panic!("boom") }));
    let [run] = runs.all().try_into().expect("one attempt");
    let polled = AssertUnwindSafe(|| (&mut task).now_or_never());
    assert!(std::panic::catch_unwind(polled).is_err());
    assert_eq!(run.current_poll(), None);
    assert!(runs.all().is_empty());
}

#[test]
fn attempts_of_run_are_separate() {
    let runs = PolledRuns::default();
    let first = runs.observe(polled(1), std::future::pending::<()>());
    let second = runs.observe(polled(2), std::future::pending::<()>());
    drop(first);
    let attempts: Vec<_> = runs.all().iter().map(|run| run.attempt).collect();
    assert_eq!(attempts, [2]);
    drop(second);
}
