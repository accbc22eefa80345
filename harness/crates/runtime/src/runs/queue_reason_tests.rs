//! Tests of the reasons why runs are queued.

use super::*;
use crate::testkit::{USER, at, run, thread};

/// A run of a thread, created at `created_at`. Its status is the word in `what`.
fn unfinished(id: &str, on: &str, what: &str, created_at: i64) -> UnfinishedRun {
    UnfinishedRun {
        run_id: run(id),
        thread_id: thread(on),
        user_id: Some(USER.to_owned()),
        status: RunStatus::parse(what).unwrap(),
        cancel_requested: false,
        was_released: false,
        created_at: at(created_at),
    }
}

/// Returns the reason of the run `r` at the time 7, when one active run per user is permitted.
fn reason(runs: &[UnfinishedRun]) -> Option<QueueReason> {
    let limits = UserRunLimits {
        max_active: Some(1),
        max_queued: None,
    };
    queue_reasons(runs, limits, at(7)).get(&run("r")).copied()
}

#[test]
fn reason_names_what_delays_the_run() {
    let queued = |created_at| unfinished("r", "t1", "pending", created_at);
    assert_eq!(reason(&[queued(5)]), Some(QueueReason::Ready));
    let owned = unfinished("a", "t1", "running", 6);
    let busy = Some(QueueReason::ThreadBusy);
    assert_eq!(reason(&[queued(5), owned]), busy);
    let earlier = unfinished("a", "t1", "pending", 4);
    assert_eq!(reason(&[earlier, queued(5)]), busy);
    let later = unfinished("a", "t1", "pending", 6);
    assert_eq!(reason(&[queued(5), later]), Some(QueueReason::Ready));
    let delayed_first = unfinished("a", "t1", "pending", 9);
    assert_eq!(
        reason(&[queued(5), delayed_first]),
        Some(QueueReason::Ready)
    );
    let elsewhere = unfinished("a", "t2", "starting", 6);
    let limit = Some(QueueReason::UserLimit);
    assert_eq!(reason(&[queued(5), elsewhere.clone()]), limit);
    let of_another = UnfinishedRun {
        user_id: Some("bob".to_owned()),
        ..elsewhere.clone()
    };
    assert_eq!(reason(&[queued(5), of_another]), Some(QueueReason::Ready));
    let delayed = Some(QueueReason::Delayed);
    assert_eq!(reason(&[elsewhere, queued(8)]), delayed);
}

#[test]
fn cancelled_and_owned_runs_have_no_reason() {
    let cancelled = UnfinishedRun {
        cancel_requested: true,
        ..unfinished("r", "t1", "pending", 5)
    };
    assert_eq!(reason(&[cancelled]), None);
    assert_eq!(reason(&[unfinished("r", "t1", "starting", 5)]), None);
}

#[test]
fn released_run_precedes_others_and_limits() {
    let released = UnfinishedRun {
        was_released: true,
        ..unfinished("r", "t1", "pending", 8)
    };
    let earlier = unfinished("a", "t1", "pending", 4);
    let elsewhere = unfinished("b", "t2", "running", 6);
    let runs = [earlier, elsewhere, released];
    assert_eq!(reason(&runs), Some(QueueReason::Ready));
    let reasons = queue_reasons(&runs, UserRunLimits::default(), at(7));
    assert_eq!(reasons[&run("a")], QueueReason::ThreadBusy);
}
