//! Delay between attempts of a node.

use crate::adapter::FlowError;
use crate::compiled::RetryPolicy;

/// Maximum delay that an error may demand, in milliseconds.
const MAX_RETRY_AFTER_MS: u64 = 60_000;

/// Returns the delay before `attempt`, from 2, in milliseconds. It grows by the factor of the
/// policy up to its maximum. With jitter it is between half and the whole of that; `jitter` is a
/// random number from 0 to 1. A detail `retryAfterMs` of the error is a lower bound, up to 60 s.
pub(super) fn retry_delay_ms(
    policy: &RetryPolicy,
    attempt: u32,
    error: &FlowError,
    jitter: f64,
) -> u64 {
    let exponent = i32::try_from(attempt.saturating_sub(2)).unwrap_or(i32::MAX);
    let grown = as_float(policy.initial_interval_ms) * policy.backoff_factor.powi(exponent);
    let bounded = grown.clamp(0.0, as_float(policy.max_interval_ms));
    let factor = if policy.jitter {
        0.5 + jitter.clamp(0.0, 1.0) / 2.0
    } else {
        1.0
    };
    let demanded = error
        .details
        .get("retryAfterMs")
        .and_then(serde_json::Value::as_u64);
    as_millis(bounded * factor).max(demanded.unwrap_or(0).min(MAX_RETRY_AFTER_MS))
}

#[expect(clippy::cast_precision_loss, reason = "delays are far below 2^52 ms")]
fn as_float(millis: u64) -> f64 {
    millis as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is not negative, and the cast saturates"
)]
fn as_millis(millis: f64) -> u64 {
    millis as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::ErrorCategory;

    fn error() -> FlowError {
        FlowError::new("E", ErrorCategory::Model, "m")
    }

    #[test]
    fn delay_grows_to_the_maximum() {
        let policy = RetryPolicy {
            jitter: false,
            max_interval_ms: 1_500,
            ..Default::default()
        };
        let delays = [2, 3, 4, 5].map(|attempt| retry_delay_ms(&policy, attempt, &error(), 0.7));
        assert_eq!(delays, [500, 1_000, 1_500, 1_500]);
    }

    #[test]
    fn jitter_halves_the_delay_at_most() {
        let policy = RetryPolicy::default();
        let delays = [0.0, 0.5, 1.0].map(|jitter| retry_delay_ms(&policy, 2, &error(), jitter));
        assert_eq!(delays, [250, 375, 500]);
    }

    #[test]
    fn retry_after_is_a_bounded_minimum() {
        let policy = RetryPolicy {
            jitter: false,
            ..Default::default()
        };
        let demanding = |ms: u64| error().with_detail("retryAfterMs", ms);
        assert_eq!(retry_delay_ms(&policy, 2, &demanding(3_000), 0.0), 3_000);
        assert_eq!(retry_delay_ms(&policy, 2, &demanding(100), 0.0), 500);
        assert_eq!(
            retry_delay_ms(&policy, 2, &demanding(9_000_000), 0.0),
            60_000
        );
    }

    #[test]
    fn hostile_factors_do_not_overflow() {
        for factor in [f64::NAN, f64::INFINITY, -3.0, 1e300] {
            let policy = RetryPolicy {
                backoff_factor: factor,
                ..Default::default()
            };
            assert!(retry_delay_ms(&policy, u32::MAX, &error(), 1.0) <= policy.max_interval_ms);
        }
    }
}
