//! Retry schedule of handling.

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::channels::InboxMessage;

/// Failed attempts after which a message is set aside. Their delays add up to less than 10 minutes.
const MAX_FAILURES: u32 = 5;
/// Number of claims after which a message is set aside: it may end its process each time.
const MAX_CLAIMS: u32 = 50;
/// Delays of attempts to handle a message.
const DELAYS: [u64; 4] = [1, 10, 60, 300];

/// Next step for a message whose handling failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// Try again at this time.
    RetryAt(DateTime<Utc>),
    /// Set it aside.
    SetAside,
}

/// Decides about a message after one more failure.
pub(super) fn after_failure(row: &InboxMessage, now: DateTime<Utc>) -> AfterFailure {
    let failures = row.failures.saturating_add(1);
    if failures >= MAX_FAILURES {
        return AfterFailure::SetAside;
    }
    let delay = DELAYS[(failures as usize - 1).min(DELAYS.len() - 1)];
    AfterFailure::RetryAt(now + TimeDelta::seconds(delay as i64))
}

/// Reports whether a message must not be claimed again.
pub(super) fn has_too_many_claims(row: &InboxMessage) -> bool {
    row.claims >= MAX_CLAIMS
}
