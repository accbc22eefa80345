//! Decides whether a claimed run starts or ends.

use crate::definition::{Durability, Recovery, RunLimits, RunRecord, RunRequest, StopReason};
use crate::termination::LOST_TEXT;

/// Error text of a run whose attempts were lost repeatedly.
const EXHAUSTED_TEXT: &str =
    "every process that executed the run ended before it, or was blocked by it";
/// Error text of a run that blocks the process that claimed it.
const STALLED_TEXT: &str = "the run blocks its process, so that no further attempt can start there";

/// Decision on a claimed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TakeoverDecision {
    Start,
    /// The run ends with this stop reason and error text.
    End(StopReason, &'static str),
}

/// Decides whether a claimed run starts. `losses` is the number of processes that died or stalled
/// while they executed the run. `began` is `true` if the run had started to execute, `is_stalled` if
/// an earlier attempt blocks a thread of this process.
pub(crate) fn decide_takeover(
    run: &RunRecord,
    request: &RunRequest,
    losses: u32,
    began: bool,
    is_stalled: bool,
    limits: &RunLimits,
) -> TakeoverDecision {
    match losses {
        0 => TakeoverDecision::Start,
        _ if run.cancel.is_some() => TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT),
        _ if limits.recovery == Recovery::Fail || request.recovery == Some(Recovery::Fail) => {
            TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT)
        }
        // A second attempt would block one more thread, until the process has none left.
        _ if is_stalled => TakeoverDecision::End(StopReason::AttemptsExhausted, STALLED_TEXT),
        // A run that crashes its processes must not be retried forever.
        lost if lost >= limits.max_attempts => {
            TakeoverDecision::End(StopReason::AttemptsExhausted, EXHAUSTED_TEXT)
        }
        _ if !began => TakeoverDecision::Start,
        _ if request.durability == Durability::Exit => {
            TakeoverDecision::End(StopReason::NodeLost, LOST_TEXT)
        }
        _ => TakeoverDecision::Start,
    }
}

#[cfg(test)]
#[path = "takeover_decision_tests.rs"]
mod tests;
