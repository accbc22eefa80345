//! Decides what becomes of a new run whose thread may be busy. Every store asks here, within its transaction.

use super::record::RunRecord;
use super::spec::{CancelAction, MultitaskStrategy};
use super::store::NewRun;
use crate::ids::RunId;

/// What becomes of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It gets the slot at once. All that wait are told to stop in this way, if a way is named.
    Take(Option<CancelAction>),
    /// It waits. All before it are told to stop in this way, if a way is named.
    Wait(Option<CancelAction>),
    /// It is refused: this run is in its way.
    Refuse(RunId),
    /// It is refused: too many wait already.
    Full,
}

/// The verdict on a run when `others` are the unfinished runs of its thread.
pub fn verdict(new: &NewRun, others: &[RunRecord]) -> Verdict {
    let (strategy, begins) = (new.multitask, new.created_at);
    let delayed = begins > new.at;
    let waits_for =
        |run: &RunRecord| run.holds_thread() || (run.cancel.is_none() && run.created_at <= begins);
    let has_to_wait = delayed || others.iter().any(waits_for);
    let full = others
        .iter()
        .filter(|run| !run.status.is_owned() && run.cancel.is_none())
        .count()
        >= new.most_waiting;
    match strategy {
        // A user who presses stop and sends at once must not see an error: who is stopping already is waited for.
        MultitaskStrategy::Reject => match others.iter().find(|run| run.cancel.is_none()) {
            Some(active) => Verdict::Refuse(active.run_id.clone()),
            None if has_to_wait => Verdict::Wait(None),
            None => Verdict::Take(None),
        },
        MultitaskStrategy::Enqueue if has_to_wait && full => Verdict::Full,
        MultitaskStrategy::Enqueue if has_to_wait => Verdict::Wait(None),
        MultitaskStrategy::Enqueue => Verdict::Take(None),
        MultitaskStrategy::Interrupt | MultitaskStrategy::Rollback => {
            let way = if strategy == MultitaskStrategy::Rollback {
                CancelAction::Rollback
            } else {
                CancelAction::Interrupt
            };
            let way = others.iter().any(|run| run.cancel.is_none()).then_some(way);
            let held = others.iter().any(RunRecord::holds_thread);
            if delayed || held {
                Verdict::Wait(way)
            } else {
                Verdict::Take(way)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::runs::RunStatus;
    use crate::testkit::{at, new_run, record};

    fn other(id: &str, status: RunStatus, begins: i64, cancel: Option<CancelAction>) -> RunRecord {
        RunRecord {
            status,
            created_at: at(begins),
            cancel,
            ..record(id, "t1")
        }
    }

    fn judged(multitask: MultitaskStrategy, begins: i64, others: &[RunRecord]) -> Verdict {
        verdict(
            &NewRun {
                multitask,
                created_at: at(begins),
                at: at(5),
                most_waiting: 3,
                ..new_run("new", "t1")
            },
            others,
        )
    }

    #[test]
    fn every_strategy_meets_every_kind_of_thread() {
        use MultitaskStrategy::{Enqueue, Interrupt, Reject, Rollback};
        use RunStatus::{Pending, Running};
        let stop = Some(CancelAction::Interrupt);
        let undo = Some(CancelAction::Rollback);
        let refused = || Verdict::Refuse(crate::testkit::run("a"));
        let running = other("a", Running, 1, None);
        let stopping = other("a", Running, 1, stop);
        let due = other("a", Pending, 4, None);
        let later = other("a", Pending, 9, None);
        // Whatever clock it was made by.
        let given_back = RunRecord {
            attempt: 2,
            ..other("a", Pending, 9, None)
        };
        let undone = RunRecord {
            attempt: 2,
            ..other("a", Pending, 9, undo)
        };
        let leaving = other("a", Pending, 4, stop);
        for (name, others, [reject, enqueue, interrupt, rollback]) in [
            (
                "free",
                vec![],
                [
                    Verdict::Take(None),
                    Verdict::Take(None),
                    Verdict::Take(None),
                    Verdict::Take(None),
                ],
            ),
            (
                "running",
                vec![running],
                [
                    refused(),
                    Verdict::Wait(None),
                    Verdict::Wait(stop),
                    Verdict::Wait(undo),
                ],
            ),
            (
                "stopping",
                vec![stopping],
                [
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                ],
            ),
            (
                "due",
                vec![due],
                [
                    refused(),
                    Verdict::Wait(None),
                    Verdict::Take(stop),
                    Verdict::Take(undo),
                ],
            ),
            (
                "later",
                vec![later],
                [
                    refused(),
                    Verdict::Take(None),
                    Verdict::Take(stop),
                    Verdict::Take(undo),
                ],
            ),
            (
                "given back",
                vec![given_back],
                [
                    refused(),
                    Verdict::Wait(None),
                    Verdict::Wait(stop),
                    Verdict::Wait(undo),
                ],
            ),
            (
                "undone yet",
                vec![undone],
                [
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                    Verdict::Wait(None),
                ],
            ),
            (
                "leaving",
                vec![leaving],
                [
                    Verdict::Take(None),
                    Verdict::Take(None),
                    Verdict::Take(None),
                    Verdict::Take(None),
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
                    judged(strategy, 5, &others),
                    expected,
                    "{name} {strategy:?}"
                );
            }
        }
    }

    #[test]
    fn a_delayed_run_waits_even_on_a_free_thread() {
        for strategy in [
            MultitaskStrategy::Reject,
            MultitaskStrategy::Enqueue,
            MultitaskStrategy::Interrupt,
        ] {
            assert_eq!(judged(strategy, 9, &[]), Verdict::Wait(None));
        }
    }

    #[test]
    fn a_queue_is_full_at_some_point() {
        let waiting: Vec<_> = (0..3)
            .map(|n| other(&format!("r{n}"), RunStatus::Pending, 1, None))
            .collect();
        assert_eq!(
            judged(MultitaskStrategy::Enqueue, 5, &waiting),
            Verdict::Full
        );
        assert_eq!(
            judged(MultitaskStrategy::Enqueue, 5, &waiting[1..]),
            Verdict::Wait(None)
        );
    }
}
