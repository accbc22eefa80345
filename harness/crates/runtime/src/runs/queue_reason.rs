//! Reasons why runs are queued.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::definition::{RunStatus, UserRunLimits};
use crate::ports::UnfinishedRun;
use deerflow_core::ids::{RunId, ThreadId};

/// Reason why a run is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueReason {
    /// Its earliest start is in the future.
    Delayed,
    /// Another run of its thread is active, or starts first.
    ThreadBusy,
    /// Its user has as many active runs as permitted.
    UserLimit,
    /// It may start; a process will claim it.
    Ready,
}

impl QueueReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [
        Self::Delayed,
        Self::ThreadBusy,
        Self::UserLimit,
        Self::Ready,
    ];

    /// Returns the name in answers and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::ThreadBusy => "thread_busy",
            Self::UserLimit => "user_limit",
            Self::Ready => "ready",
        }
    }
}

/// Returns the reasons of the queued runs among `unfinished`, which are all unfinished runs of one
/// user or of all users, oldest first. Runs with a cancel request have no reason.
pub fn queue_reasons(
    unfinished: &[UnfinishedRun],
    limits: UserRunLimits,
    now: DateTime<Utc>,
) -> HashMap<RunId, QueueReason> {
    let is_due = |run: &UnfinishedRun| run.was_released || run.created_at <= now;
    let mut active: HashMap<&str, u64> = HashMap::new();
    // The run of each thread that executes, or that starts next.
    let mut first: HashMap<&ThreadId, &UnfinishedRun> = HashMap::new();
    for run in unfinished {
        if let (true, Some(user)) = (run.status.is_owned(), &run.user_id) {
            *active.entry(user).or_default() += 1;
        }
        let candidate = run.status.is_owned() || (!run.cancel_requested && is_due(run));
        if candidate {
            let first = first.entry(&run.thread_id).or_insert(run);
            let precedes = |run: &UnfinishedRun| (run.status.is_owned(), run.was_released);
            if precedes(run) > precedes(first) {
                *first = run;
            }
        }
    }
    let is_limited = |run: &UnfinishedRun| {
        let active = run.user_id.as_deref().and_then(|user| active.get(user));
        let max = limits.max_active.filter(|_| !run.was_released);
        max.is_some_and(|max| active.is_some_and(|active| *active >= max))
    };
    let reason = |run: &UnfinishedRun| match first.get(&run.thread_id) {
        _ if !is_due(run) => QueueReason::Delayed,
        Some(first) if first.run_id != run.run_id => QueueReason::ThreadBusy,
        _ if is_limited(run) => QueueReason::UserLimit,
        _ => QueueReason::Ready,
    };
    let is_queued =
        |run: &&UnfinishedRun| run.status == RunStatus::Pending && !run.cancel_requested;
    let queued = unfinished.iter().filter(is_queued);
    queued
        .map(|run| (run.run_id.clone(), reason(run)))
        .collect()
}

#[cfg(test)]
#[path = "queue_reason_tests.rs"]
mod tests;
