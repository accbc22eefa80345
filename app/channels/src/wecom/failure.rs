//! Meaning of error codes.

use std::time::Duration;

use super::frame::FrameAnswer;
use crate::platform::PlatformError;

/// Delay after a refusal for frequency. The platform names none.
const RATE_DELAY: Duration = Duration::from_secs(20);

/// Number of consecutive refusals after which the credentials count as wrong.
const MAX_REFUSALS: u32 = 5;

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
pub(super) fn outcome(answer: &FrameAnswer) -> Outcome {
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

/// Interprets the answer to a subscription. `refusals` is the number of consecutive refusals before.
///
/// The platform does not list the codes of wrong credentials. A refusal that names them is final;
/// any other is, after as many attempts as the vendor's own client makes.
pub(super) fn subscription(answer: &FrameAnswer, refusals: u32) -> Result<(), PlatformError> {
    let text = answer.message.to_ascii_lowercase();
    let names_credentials = [
        "secret",
        "bot_id",
        "botid",
        "credential",
        "auth",
        "disabled",
    ]
    .iter()
    .any(|word| text.contains(word));
    match answer.code {
        0 => Ok(()),
        -1 | 6_000 => Err(PlatformError::Unavailable(describe(answer))),
        45_009 | 45_033 => Err(PlatformError::RateLimited {
            retry_after: RATE_DELAY,
            account: true,
        }),
        code if names_credentials
            || matches!(code, 40_001 | 40_013 | 40_014 | 41_001 | 41_002 | 41_004)
            || refusals + 1 >= MAX_REFUSALS =>
        {
            Err(PlatformError::Rejected(format!(
                "{}, check bot_id and bot_secret, and that the bot uses the long connection",
                describe(answer)
            )))
        }
        _ => Err(PlatformError::Unavailable(describe(answer))),
    }
}

fn describe(answer: &FrameAnswer) -> String {
    format!("wecom refused with {}: {}", answer.code, answer.message)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answer(code: i64) -> FrameAnswer {
        FrameAnswer {
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
        let refused = |code, message: &str, refusals| {
            let answer = FrameAnswer {
                message: message.to_owned(),
                ..answer(code)
            };
            matches!(
                subscription(&answer, refusals),
                Err(PlatformError::Rejected(_))
            )
        };
        assert_eq!(subscription(&answer(0), 9), Ok(()));
        assert!(refused(40_001, "words", 0));
        assert!(refused(853_000, "invalid bot_id or secret", 0));
        assert!(!refused(853_000, "words", 3));
        assert!(refused(853_000, "words", 4));
        assert!(!refused(-1, "system busy", 100));
    }
}
