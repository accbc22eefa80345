//! Meaning of answers of the REST API.

use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;

use crate::platform::PlatformError;

/// Delay after a rate limit that names none.
const DEFAULT_DELAY: Duration = Duration::from_secs(5);
/// Delay after a refusal of the address, which has no JSON body.
const BAN_DELAY: Duration = Duration::from_secs(60);
/// Maximum delay that is believed.
const MAX_DELAY: f64 = 86_400.0;

/// Code of a channel that does not exist.
pub(super) const UNKNOWN_CHANNEL: i64 = 10003;
/// Code of a message that does not exist.
pub(super) const UNKNOWN_MESSAGE: i64 = 10008;
/// Code of a message that already has a thread.
pub(super) const HAS_THREAD: i64 = 160_004;
/// Codes with which an edit of an old message, or of one in an archived thread, is refused.
pub(super) const NOT_EDITABLE: [i64; 3] = [30046, 50005, 50083];

/// Failed call of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    /// Refusal with Discord's code, or 0.
    Code {
        /// HTTP status.
        status: u16,
        /// Code.
        code: i64,
        /// Text of Discord.
        message: String,
    },
    /// Any other failure.
    Failed(PlatformError),
}

impl ApiError {
    /// Returns the code of a refusal.
    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Self::Code { code, .. } => Some(*code),
            Self::Failed(_) => None,
        }
    }
}

impl From<ApiError> for PlatformError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Failed(error) => error,
            ApiError::Code { code, message, .. } => Self::Refused(words(code, &message)),
        }
    }
}

fn words(code: i64, message: &str) -> String {
    match code {
        UNKNOWN_CHANNEL => "the channel does not exist, or the bot cannot see it".to_owned(),
        50001 | 50013 => format!(
            "the bot lacks a permission in the channel ({message}): allow it to view the channel, \
             send messages and files, use threads and read the message history"
        ),
        50007 => "the person does not accept direct messages of the bot".to_owned(),
        40005 => "the file is too large for Discord, send a smaller one".to_owned(),
        _ => format!("Discord refused the call: {message} (code {code})"),
    }
}

/// Decides the result of a call from its answer.
pub(super) fn outcome(status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    let json = serde_json::from_slice::<Value>(body).ok();
    if (200..300).contains(&status) {
        return match json {
            Some(value) => Ok(value),
            None if body.is_empty() => Ok(Value::Null),
            None => Err(ApiError::Failed(PlatformError::Unavailable(
                "the answer of Discord is no JSON".to_owned(),
            ))),
        };
    }
    let text = json.as_ref().and_then(|body| body["message"].as_str());
    let message: String = text
        .unwrap_or("no reason given")
        .chars()
        .take(200)
        .collect();
    let failed = |error| Err(ApiError::Failed(error));
    match status {
        401 => failed(PlatformError::Rejected(
            "Discord refused the bot token, enter the current token of the bot".to_owned(),
        )),
        429 => failed(rate_limit(headers, json.as_ref())),
        400..500 => Err(ApiError::Code {
            status,
            code: json
                .as_ref()
                .and_then(|body| body["code"].as_i64())
                .unwrap_or_default(),
            message,
        }),
        _ => failed(PlatformError::Unavailable(format!(
            "Discord answered with status {status}"
        ))),
    }
}

fn rate_limit(headers: &HeaderMap, body: Option<&Value>) -> PlatformError {
    let in_body = body.and_then(|body| body["retry_after"].as_f64());
    let in_header = seconds(headers, "retry-after");
    let is_global = body.is_none_or(|body| body["global"] == true)
        || text(headers, "x-ratelimit-scope") == Some("global");
    let default = if body.is_none() {
        BAN_DELAY
    } else {
        DEFAULT_DELAY
    };
    PlatformError::RateLimited {
        retry_after: in_body.and_then(delay).or(in_header).unwrap_or(default),
        account: is_global,
    }
}

fn delay(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(MAX_DELAY)))
}

/// Reads a header with a number of seconds.
pub(super) fn seconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    text(headers, name)?.trim().parse().ok().and_then(delay)
}

/// Reads a header.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
