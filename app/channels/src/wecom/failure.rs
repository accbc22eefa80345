//! Meaning of error codes.

use std::time::Duration;

use super::frame::Answer;
use crate::platform::PlatformError;

/// Delay after a refusal for frequency. The platform names none.
const RATE_DELAY: Duration = Duration::from_secs(20);

/// Result of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The platform accepted it.
    Done,
    /// The request is unknown: it belongs to another connection.
    Unknown,
    /// The stream is finished or expired.
    Expired,
    /// Error.
    Failed(PlatformError),
}

/// Interprets the answer to a message.
pub(super) fn outcome(answer: &Answer) -> Outcome {
    let text = || describe(answer);
    Outcome::Failed(match answer.code {
        0 => return Outcome::Done,
        846_605 => return Outcome::Unknown,
        846_608 => return Outcome::Expired,
        45_009 | 45_033 => PlatformError::RateLimited {
            retry_after: RATE_DELAY,
            account: false,
        },
        // Busy, or a frame that overlapped with an unanswered one.
        -1 | 6_000 | 846_600 | 846_607 => PlatformError::Unavailable(text()),
        _ => PlatformError::Refused(text()),
    })
}

/// Interprets the answer to a subscription.
pub(super) fn subscription(answer: &Answer) -> Result<(), PlatformError> {
    match answer.code {
        0 => Ok(()),
        -1 | 6_000 => Err(PlatformError::Unavailable(describe(answer))),
        45_009 | 45_033 => Err(PlatformError::RateLimited {
            retry_after: RATE_DELAY,
            account: true,
        }),
        _ => Err(PlatformError::Rejected(format!(
            "{}, check bot_id and bot_secret, and that the bot uses the long connection",
            describe(answer)
        ))),
    }
}

fn describe(answer: &Answer) -> String {
    format!("wecom refused with {}: {}", answer.code, answer.message)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answer(code: i64) -> Answer {
        Answer {
            code,
            message: "words".to_owned(),
            body: Value::Null,
        }
    }

    #[test]
    fn codes_have_their_meaning() {
        assert_eq!(outcome(&answer(0)), Outcome::Done);
        assert_eq!(outcome(&answer(846_605)), Outcome::Unknown);
        assert_eq!(outcome(&answer(846_608)), Outcome::Expired);
        let failed = |code| match outcome(&answer(code)) {
            Outcome::Failed(error) => error,
            other => panic!("{other:?}"),
        };
        assert!(matches!(failed(45_009), PlatformError::RateLimited { .. }));
        assert!(matches!(failed(-1), PlatformError::Unavailable(_)));
        assert!(matches!(failed(40_058), PlatformError::Refused(text) if text.contains("words")));
    }

    #[test]
    fn wrong_credentials_are_final() {
        assert_eq!(subscription(&answer(0)), Ok(()));
        assert!(matches!(
            subscription(&answer(40_001)),
            Err(PlatformError::Rejected(_))
        ));
        assert!(matches!(
            subscription(&answer(-1)),
            Err(PlatformError::Unavailable(_))
        ));
    }
}
