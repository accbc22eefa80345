//! Meaning of the platform's answers.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::platform::PlatformError;

/// Maximum length of a text of the platform within an error, in characters.
const MAX_WORDS: usize = 300;
/// Longest delay that is taken from a header.
const MAX_DELAY_SECONDS: f64 = 3600.0;

/// Reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FeishuFailure {
    /// The limit of the app; nothing may be called until the delay has passed.
    RateLimited(Duration),
    /// The limit of a chat or message, or a limit without a delay.
    Busy,
    /// The message or the chat does not exist for the bot.
    TargetGone(String),
    /// The content is invalid.
    ContentRefused(String),
    /// The app lacks a scope.
    MissingScope(String),
    /// The access token is not valid any more.
    StaleToken,
    /// Another final refusal.
    Refused(String),
    /// The credentials are invalid.
    Rejected(String),
    /// The platform failed or was not reached. The call may have had its effect.
    Unavailable(String),
}

impl FeishuFailure {
    /// `true` if a repetition would fail too, so that another way is tried.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TargetGone(_)
                | Self::ContentRefused(_)
                | Self::MissingScope(_)
                | Self::Refused(_)
        )
    }

    /// Returns the error of the port for an attempt, counted from 1.
    pub(super) fn into_error(self, attempt: u32) -> PlatformError {
        match self {
            Self::RateLimited(retry_after) => PlatformError::RateLimited {
                retry_after,
                account: true,
            },
            Self::Busy => PlatformError::RateLimited {
                retry_after: Duration::from_secs(match attempt {
                    0 | 1 => 1,
                    2 => 3,
                    _ => 9,
                }),
                account: false,
            },
            Self::TargetGone(text) => {
                PlatformError::Refused(format!("the message or chat is gone: {text}"))
            }
            Self::ContentRefused(text) => {
                PlatformError::Refused(format!("the content was refused: {text}"))
            }
            Self::MissingScope(text) => PlatformError::Refused(format!(
                "the app lacks a scope, add it in the developer console and publish a version: {text}"
            )),
            Self::StaleToken => {
                PlatformError::Unavailable("a new access token was refused".to_owned())
            }
            Self::Refused(text) => PlatformError::Refused(text),
            Self::Rejected(text) => PlatformError::Rejected(text),
            Self::Unavailable(text) => PlatformError::Unavailable(text),
        }
    }
}

/// Returns the body of a success, or the meaning of the failure.
pub(super) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Value, FeishuFailure> {
    let value: Option<Value> = serde_json::from_slice(body).ok().filter(Value::is_object);
    let code = value.as_ref().and_then(|value| number(&value["code"]));
    if status == StatusCode::TOO_MANY_REQUESTS || code == Some(99_991_400) {
        return Err(reset(headers).map_or(FeishuFailure::Busy, FeishuFailure::RateLimited));
    }
    if matches!(
        code,
        Some(11_020 | 11_021 | 11_232 | 11_247 | 230_020 | 99_991_402)
    ) {
        return Err(FeishuFailure::Busy);
    }
    let words = || {
        let message = value.as_ref().and_then(|value| value["msg"].as_str());
        let message: String = message
            .unwrap_or_default()
            .chars()
            .take(MAX_WORDS)
            .collect();
        match code {
            Some(code) => format!("{message} (code {code})"),
            None => format!("status {}", status.as_u16()),
        }
    };
    let is_temporary = status.is_server_error()
        || status.is_redirection()
        || matches!(status.as_u16(), 408 | 409 | 425)
        || matches!(code, Some(2200 | 230_049));
    if is_temporary {
        return Err(FeishuFailure::Unavailable(words()));
    }
    match (code, value.as_ref()) {
        (Some(0), Some(value)) if status.is_success() => Ok(value.clone()),
        (Some(99_991_663..=99_991_666 | 99_991_668), _) => Err(FeishuFailure::StaleToken),
        (Some(99_991_672), _) => Err(FeishuFailure::MissingScope(words())),
        (Some(230_002 | 230_005 | 230_011 | 230_017 | 230_110), _) => {
            Err(FeishuFailure::TargetGone(words()))
        }
        (Some(230_001 | 230_021 | 230_022 | 230_025 | 230_099), _) => {
            Err(FeishuFailure::ContentRefused(words()))
        }
        (None | Some(0), _) if status.is_success() => Err(FeishuFailure::Unavailable(
            "the answer is not that of the platform".to_owned(),
        )),
        _ => Err(FeishuFailure::Refused(words())),
    }
}

/// Returns the delay that the headers of a rate limit name.
fn reset(headers: &HeaderMap) -> Option<Duration> {
    let seconds = ["x-ogw-ratelimit-reset", "retry-after"]
        .into_iter()
        .find_map(|name| headers.get(name))?
        .to_str()
        .ok()?
        .trim()
        .parse::<f64>()
        .ok()?;
    (seconds.is_finite() && seconds > 0.0)
        .then(|| Duration::from_secs_f64(seconds.min(MAX_DELAY_SECONDS)))
}

/// Returns an integer that is written as a number or as a text.
pub(super) fn number(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

/// Access token and its lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IssuedToken {
    /// Token.
    pub(super) value: String,
    /// Lifetime in seconds.
    pub(super) seconds: i64,
}

/// Returns the token of an answer. A refusal is final only for the codes of invalid credentials.
pub(super) fn judge_token(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<IssuedToken, FeishuFailure> {
    let code = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| number(&value["code"]));
    let body = judge(status, headers, body).map_err(|failure| match (failure, code) {
        (FeishuFailure::Refused(text), Some(10_001..=10_099 | 99_991_543)) => {
            FeishuFailure::Rejected(format!("the app id or secret is invalid: {text}"))
        }
        (FeishuFailure::RateLimited(delay), _) => FeishuFailure::RateLimited(delay),
        (FeishuFailure::Busy, _) => FeishuFailure::Busy,
        (FeishuFailure::Unavailable(text) | FeishuFailure::Refused(text), _) => {
            FeishuFailure::Unavailable(text)
        }
        (other, _) => FeishuFailure::Unavailable(format!("no access token was issued: {other:?}")),
    })?;
    let value = body["tenant_access_token"]
        .as_str()
        .filter(|token| !token.is_empty())
        .ok_or_else(|| FeishuFailure::Unavailable("the answer lacks an access token".to_owned()))?;
    let seconds = number(&body["expire"]).unwrap_or(7200).clamp(0, 86_400);
    Ok(IssuedToken {
        value: value.to_owned(),
        seconds,
    })
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
