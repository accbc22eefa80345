//! Decides what a new run does about a thread that is busy.

use super::record::RunRecord;
use super::spec::{CancelAction, MultitaskStrategy};

/// What to do about the active run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotDecision {
    /// Refuse the new run.
    Refuse,
    /// Tell the active run to stop in this way, and wait for its end.
    MakeRoom(CancelAction),
    /// It is stopping already: wait for its end. A user who presses stop and sends at once must not see an error.
    AwaitEnd,
}

/// The decision for `strategy` when `active` holds the slot.
pub(super) fn decide(strategy: MultitaskStrategy, active: &RunRecord) -> SlotDecision {
    match (strategy, active.cancel) {
        (_, Some(_)) => SlotDecision::AwaitEnd,
        (MultitaskStrategy::Reject, None) => SlotDecision::Refuse,
        (MultitaskStrategy::Interrupt, None) => SlotDecision::MakeRoom(CancelAction::Interrupt),
        (MultitaskStrategy::Rollback, None) => SlotDecision::MakeRoom(CancelAction::Rollback),
    }
}
