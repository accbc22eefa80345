//! Retry schedule of sending.

use std::time::Duration;

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{DELIVERY_PERIOD, Outgoing};

use crate::bot::MAX_RATE_DELAY;
use crate::platform::PlatformError;

/// Delays of the first attempts to send a message, in seconds.
const DELAYS: [u64; 4] = [1, 3, 9, 20];
/// Delay of further attempts while a message is young, so that it arrives soon after an outage.
const DELAY: u64 = 30;
/// Age of a message from which attempts are rarer, and their delay.
const OLD: Duration = Duration::from_secs(60 * 60);
const OLD_DELAY: u64 = 300;
/// Attempts after which a file is abandoned, so that it delays later messages for about half a
/// minute only.
const FILE_ATTEMPTS: u32 = 5;

/// Next step for a message that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AfterSend {
    /// Try again after this delay; `counts` is `false` for a rate limit.
    Retry {
        /// Delay.
        delay: Duration,
        /// `true` if the attempt is counted.
        counts: bool,
    },
    /// Make it a dead letter if the platform answers other calls. Otherwise try again after this
    /// delay: the failure is not one of the message.
    Abandon {
        /// Delay.
        delay: Duration,
    },
    /// Make it a dead letter.
    Bury,
    /// Stop sending: this node no longer serves the account.
    Stop,
}

/// Decides about a message, which may be a file, after a failed attempt.
pub(super) fn after_send(
    row: &Outgoing,
    is_file: bool,
    error: &PlatformError,
    now: DateTime<Utc>,
) -> AfterSend {
    let age = (now - row.created_at).to_std().unwrap_or_default();
    match error {
        PlatformError::Refused(_) => AfterSend::Bury,
        PlatformError::Sink(_) => AfterSend::Stop,
        _ if age >= DELIVERY_PERIOD => AfterSend::Bury,
        PlatformError::RateLimited { retry_after, .. } => AfterSend::Retry {
            delay: (*retry_after).min(MAX_RATE_DELAY),
            counts: false,
        },
        PlatformError::LiveExpired(_) => AfterSend::Retry {
            delay: Duration::ZERO,
            counts: true,
        },
        PlatformError::Unavailable(_)
        | PlatformError::Displaced(_)
        | PlatformError::Rejected(_) => {
            let delay = Duration::from_secs(match DELAYS.get(row.attempts as usize) {
                Some(delay) => *delay,
                None if age < OLD => DELAY,
                None => OLD_DELAY,
            });
            // The stored number does not include the attempt that failed now.
            if is_file && row.attempts.saturating_add(1) >= FILE_ATTEMPTS {
                return AfterSend::Abandon { delay };
            }
            AfterSend::Retry {
                delay,
                counts: true,
            }
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
