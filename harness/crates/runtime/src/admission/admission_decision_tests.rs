//! Tests of the admission decision.

use super::*;
use crate::definition::{RunStatus, UserRunLimits};
use crate::testkit::{at, new_run, record, with_strategy};

fn other(id: &str, status: RunStatus, starts_at: i64, cancel: Option<CancelAction>) -> RunRecord {
    RunRecord {
        status,
        created_at: at(starts_at),
        cancel,
        ..record(id, "t1")
    }
}

fn decided(
    multitask: MultitaskStrategy,
    starts_at: i64,
    others: &[RunRecord],
) -> AdmissionDecision {
    decide_admission(
        &NewRun {
            created_at: at(starts_at),
            at: at(5),
            most_waiting: 3,
            ..with_strategy(new_run("new", "t1"), multitask)
        },
        others,
        UserRuns::default(),
    )
}

#[test]
fn limits_per_user_queue_and_reject_runs() {
    let decided = |strategy, starts_at, others: &[RunRecord], active, queued| {
        let new = NewRun {
            created_at: at(starts_at),
            at: at(5),
            per_user: UserRunLimits {
                max_active: Some(2),
                max_queued: Some(3),
            },
            ..with_strategy(new_run("new", "t1"), strategy)
        };
        decide_admission(&new, others, UserRuns { active, queued })
    };
    let exceeded = AdmissionDecision::QuotaExceeded(QuotaExceeded {
        quota: Quota::QueuedRuns,
        used: 3,
        limit: 3,
    });
    let (reject, enqueue) = (MultitaskStrategy::Reject, MultitaskStrategy::Enqueue);
    for strategy in [reject, enqueue] {
        let take = AdmissionDecision::Take(None);
        assert_eq!(decided(strategy, 5, &[], 1, 3), take, "it does not wait");
        let wait = AdmissionDecision::Wait(None);
        assert_eq!(decided(strategy, 5, &[], 2, 2), wait, "too many are active");
        assert_eq!(decided(strategy, 5, &[], 2, 3), exceeded, "too many wait");
        assert_eq!(decided(strategy, 9, &[], 0, 3), exceeded, "it is delayed");
    }
    let running = [other("a", RunStatus::Running, 1, None)];
    let interrupted = AdmissionDecision::Wait(Some(CancelAction::Interrupt));
    let interrupt = MultitaskStrategy::Interrupt;
    assert_eq!(decided(interrupt, 5, &running, 2, 2), interrupted);
    assert!(matches!(
        decided(reject, 5, &running, 2, 3),
        AdmissionDecision::Refuse(_)
    ));
}

#[test]
fn decision_covers_all_strategies_and_thread_states() {
    use MultitaskStrategy::{Enqueue, Interrupt, Reject, Rollback};
    use RunStatus::{Pending, Running};
    let stop = Some(CancelAction::Interrupt);
    let rollback_action = Some(CancelAction::Rollback);
    let refused = || AdmissionDecision::Refuse(crate::testkit::run("a"));
    let running = other("a", Running, 1, None);
    let stopping = other("a", Running, 1, stop);
    let due = other("a", Pending, 4, None);
    let later = other("a", Pending, 9, None);
    // Its creation time may come from another clock.
    let released = RunRecord {
        attempt: 2,
        ..other("a", Pending, 9, None)
    };
    let rollback_pending = RunRecord {
        attempt: 2,
        ..other("a", Pending, 9, rollback_action)
    };
    let cancelled = other("a", Pending, 4, stop);
    for (name, others, [reject, enqueue, interrupt, rollback]) in [
        (
            "free",
            vec![],
            [
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
            ],
        ),
        (
            "running",
            vec![running],
            [
                refused(),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(stop),
                AdmissionDecision::Wait(rollback_action),
            ],
        ),
        (
            "stopping",
            vec![stopping],
            [
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
            ],
        ),
        (
            "queued",
            vec![due],
            [
                refused(),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Take(stop),
                AdmissionDecision::Take(rollback_action),
            ],
        ),
        (
            "later",
            vec![later],
            [
                refused(),
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(stop),
                AdmissionDecision::Take(rollback_action),
            ],
        ),
        (
            "released",
            vec![released],
            [
                refused(),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(stop),
                AdmissionDecision::Wait(rollback_action),
            ],
        ),
        (
            "rollback pending",
            vec![rollback_pending],
            [
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
                AdmissionDecision::Wait(None),
            ],
        ),
        (
            "cancelled",
            vec![cancelled],
            [
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
                AdmissionDecision::Take(None),
            ],
        ),
    ] {
        for (strategy, expected) in [
            (Reject, reject),
            (Enqueue, enqueue),
            (Interrupt, interrupt),
            (Rollback, rollback),
        ] {
            assert_eq!(
                decided(strategy, 5, &others),
                expected,
                "{name} {strategy:?}"
            );
        }
    }
}

#[test]
fn delayed_run_is_queued_on_free_thread() {
    for strategy in [
        MultitaskStrategy::Reject,
        MultitaskStrategy::Enqueue,
        MultitaskStrategy::Interrupt,
    ] {
        assert_eq!(decided(strategy, 9, &[]), AdmissionDecision::Wait(None));
    }
}

#[test]
fn full_queue_rejects_run() {
    let waiting: Vec<_> = (0..3)
        .map(|n| other(&format!("r{n}"), RunStatus::Pending, 1, None))
        .collect();
    assert_eq!(
        decided(MultitaskStrategy::Enqueue, 5, &waiting),
        AdmissionDecision::Full
    );
    assert_eq!(
        decided(MultitaskStrategy::Enqueue, 5, &waiting[1..]),
        AdmissionDecision::Wait(None)
    );
}
