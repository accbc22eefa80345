//! Retry schedules of handling and of sending.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::channels::{DELIVERY_PERIOD, InboxMessage, Outgoing};

use crate::platform::PlatformError;

/// Failed attempts after which a message is set aside, and the period in which they occur.
const MAX_FAILURES: u32 = 5;
/// Number of claims after which a message is set aside: it may end its process each time.
const MAX_CLAIMS: u32 = 50;
/// Delays of attempts to handle a message.
const HANDLING: [u64; 4] = [1, 10, 60, 300];
/// Delays of attempts to send a message; the last one repeats.
const SENDING: [u64; 8] = [1, 3, 9, 30, 120, 600, 1_800, 3_600];
/// Maximum delay that a platform may impose on a chat.
const MAX_RATE_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Next step for a message whose handling failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Try again at this time.
    RetryAt(DateTime<Utc>),
    /// Set it aside.
    SetAside,
}

/// Decides about a message after one more failure.
pub(crate) fn after_failure(row: &InboxMessage, now: DateTime<Utc>) -> AfterFailure {
    let failures = row.failures.saturating_add(1);
    if failures >= MAX_FAILURES {
        return AfterFailure::SetAside;
    }
    let delay = HANDLING[(failures as usize - 1).min(HANDLING.len() - 1)];
    AfterFailure::RetryAt(now + TimeDelta::seconds(delay as i64))
}

/// Reports whether a message must not be claimed again.
pub(crate) fn has_too_many_claims(row: &InboxMessage) -> bool {
    row.claims >= MAX_CLAIMS
}

/// Next step for a message that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AfterSend {
    /// Try again after this delay; `closes` names the lanes that are closed meanwhile.
    Retry {
        /// Delay.
        delay: Duration,
        /// Closed lanes.
        closes: Lane,
    },
    /// Make it a dead letter.
    Bury,
    /// Stop sending: this node no longer serves the account.
    Stop,
}

/// What a failed call closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Only the message.
    Message,
    /// The chat.
    Chat,
    /// The account.
    Account,
}

/// Decides about a message after a failed attempt.
pub(crate) fn after_send(row: &Outgoing, error: &PlatformError, now: DateTime<Utc>) -> AfterSend {
    let age = (now - row.created_at).to_std().unwrap_or_default();
    match error {
        PlatformError::Refused(_) => AfterSend::Bury,
        PlatformError::Sink(_) => AfterSend::Stop,
        _ if age >= DELIVERY_PERIOD => AfterSend::Bury,
        PlatformError::RateLimited {
            retry_after,
            account,
        } => AfterSend::Retry {
            delay: (*retry_after).min(MAX_RATE_DELAY),
            closes: if *account { Lane::Account } else { Lane::Chat },
        },
        PlatformError::LiveExpired(_) => AfterSend::Retry {
            delay: Duration::ZERO,
            closes: Lane::Message,
        },
        PlatformError::Unavailable(_)
        | PlatformError::Displaced(_)
        | PlatformError::Rejected(_) => {
            let delay = SENDING[(row.attempts as usize).min(SENDING.len() - 1)];
            AfterSend::Retry {
                delay: Duration::from_secs(delay),
                closes: Lane::Message,
            }
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
