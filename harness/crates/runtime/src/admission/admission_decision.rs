//! Decides whether a new run starts, is queued or is rejected. Every store calls this within its
//! admission transaction.

use crate::definition::{CancelAction, MultitaskStrategy, RunRecord};
use crate::ports::NewRun;
use deerflow_core::ids::RunId;
use deerflow_core::quota::{Quota, QuotaExceeded};

/// Admission decision on a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The run starts at once. If an action is given, all queued runs of the thread are cancelled
    /// with it.
    Take(Option<CancelAction>),
    /// The run is queued. If an action is given, all earlier runs of the thread are cancelled with
    /// it.
    Wait(Option<CancelAction>),
    /// The run is rejected because of this active run.
    Refuse(RunId),
    /// The run is rejected because the thread's queue is full.
    Full,
    /// The run is rejected because its user has too many queued runs.
    QuotaExceeded(QuotaExceeded),
}

/// Numbers of unfinished runs of a user, on all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserRuns {
    /// Number of runs that processes own.
    pub active: u64,
    /// Number of queued runs without a cancel request.
    pub queued: u64,
}

/// Decides on a run, given `others`, the unfinished runs of its thread, and `user_runs`, which is
/// only read if the run has limits per user.
pub fn decide_admission(
    new: &NewRun,
    others: &[RunRecord],
    user_runs: UserRuns,
) -> AdmissionDecision {
    let limits = &new.per_user;
    let decision = match decide_on_thread(new, others) {
        AdmissionDecision::Take(action)
            if limits.max_active.is_some_and(|max| user_runs.active >= max) =>
        {
            AdmissionDecision::Wait(action)
        }
        decision => decision,
    };
    match (&decision, limits.max_queued) {
        (AdmissionDecision::Wait(_), Some(limit)) if user_runs.queued >= limit => {
            AdmissionDecision::QuotaExceeded(QuotaExceeded {
                quota: Quota::QueuedRuns,
                used: user_runs.queued,
                limit,
            })
        }
        _ => decision,
    }
}

fn decide_on_thread(new: &NewRun, others: &[RunRecord]) -> AdmissionDecision {
    let (strategy, starts_at) = (new.request().multitask, new.created_at);
    let delayed = starts_at > new.at;
    let waits_for = |run: &RunRecord| {
        run.holds_thread() || (run.cancel.is_none() && run.created_at <= starts_at)
    };
    let has_to_wait = delayed || others.iter().any(waits_for);
    let full = others
        .iter()
        .filter(|run| !run.status.is_owned() && run.cancel.is_none())
        .count()
        >= new.most_waiting;
    match strategy {
        // A user may stop a run and send the next message at once. That must not fail: the new run
        // waits for runs that are already being cancelled.
        MultitaskStrategy::Reject => match others.iter().find(|run| run.cancel.is_none()) {
            Some(active) => AdmissionDecision::Refuse(active.run_id.clone()),
            None if has_to_wait => AdmissionDecision::Wait(None),
            None => AdmissionDecision::Take(None),
        },
        MultitaskStrategy::Enqueue if has_to_wait && full => AdmissionDecision::Full,
        MultitaskStrategy::Enqueue if has_to_wait => AdmissionDecision::Wait(None),
        MultitaskStrategy::Enqueue => AdmissionDecision::Take(None),
        MultitaskStrategy::Interrupt | MultitaskStrategy::Rollback => {
            let action = if strategy == MultitaskStrategy::Rollback {
                CancelAction::Rollback
            } else {
                CancelAction::Interrupt
            };
            let action = others
                .iter()
                .any(|run| run.cancel.is_none())
                .then_some(action);
            let is_blocked = others.iter().any(RunRecord::holds_thread);
            if delayed || is_blocked {
                AdmissionDecision::Wait(action)
            } else {
                AdmissionDecision::Take(action)
            }
        }
    }
}

#[cfg(test)]
#[path = "admission_decision_tests.rs"]
mod tests;
