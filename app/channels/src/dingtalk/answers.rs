//! Meaning of answers of the REST API.

use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;

use crate::platform::PlatformError;

/// Delay after a rate limit that names none.
const DEFAULT_DELAY: Duration = Duration::from_secs(5);
/// Delay after too many messages within a minute; longer bursts cost ten minutes of silence.
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum delay that is believed.
const MAX_DELAY: u64 = 86_400;

/// Failed call of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    /// The access token is not valid any more.
    TokenExpired,
    /// Refusal with DingTalk's code.
    Code {
        /// HTTP status.
        status: u16,
        /// Code.
        code: String,
        /// Words for persons.
        words: String,
    },
    /// Any other failure.
    Failed(PlatformError),
}

impl From<ApiError> for PlatformError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::TokenExpired => Self::Rejected(
                "DingTalk refuses the access tokens of the app, check that it is enabled"
                    .to_owned(),
            ),
            ApiError::Code { words, .. } => Self::Refused(words),
            ApiError::Failed(error) => error,
        }
    }
}

/// Decides the result of a call from its answer.
pub(super) fn outcome(status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    let json = serde_json::from_slice::<Value>(body).ok();
    let failed = |error| Err(ApiError::Failed(error));
    if (200..300).contains(&status) {
        return match json {
            Some(value) => old_outcome(value),
            None if body.is_empty() => Ok(Value::Null),
            None => failed(PlatformError::Unavailable(
                "the answer of DingTalk is no JSON".to_owned(),
            )),
        };
    }
    let text = |key: &str| {
        let text = json.as_ref().and_then(|body| body[key].as_str());
        text.unwrap_or_default()
            .chars()
            .take(200)
            .collect::<String>()
    };
    let (code, message) = (text("code"), text("message"));
    if status == 429 || is_limit(&code, &message) {
        return failed(PlatformError::RateLimited {
            retry_after: delay(headers, &code, &message),
            account: false,
        });
    }
    match status {
        401 => Err(ApiError::TokenExpired),
        400..500 => Err(ApiError::Code {
            status,
            words: words(&code, &message, json.as_ref()),
            code,
        }),
        _ => failed(PlatformError::Unavailable(format!(
            "DingTalk answered with status {status}"
        ))),
    }
}

/// Decides the result of an answer in the older form, with a number in `errcode`.
fn old_outcome(body: Value) -> Result<Value, ApiError> {
    let message: String = body["errmsg"]
        .as_str()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    match body["errcode"].as_i64() {
        None | Some(0) => Ok(body),
        Some(40001 | 40014 | 42001) => Err(ApiError::TokenExpired),
        Some(90002 | 90018 | 130_101) => Err(ApiError::Failed(PlatformError::RateLimited {
            retry_after: MINUTE,
            account: false,
        })),
        Some(-1) => Err(ApiError::Failed(PlatformError::Unavailable(
            "DingTalk is busy".to_owned(),
        ))),
        Some(code) => Err(ApiError::Code {
            status: 200,
            words: format!("DingTalk refused the call: {message} (code {code})"),
            code: code.to_string(),
        }),
    }
}

fn is_limit(code: &str, message: &str) -> bool {
    let code = code.to_ascii_lowercase();
    [
        "throttl",
        "qpslimit",
        "flowcontrol",
        "toofast",
        "too.fast",
        "ratelimit",
    ]
    .iter()
    .any(|word| code.contains(word))
        || message.to_ascii_lowercase().contains("too fast")
}

fn delay(headers: &HeaderMap, code: &str, message: &str) -> Duration {
    let named = headers
        .get("retry-after")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse::<u64>().ok());
    match named {
        Some(seconds) => Duration::from_secs(seconds.min(MAX_DELAY)),
        None if format!("{code} {message}")
            .to_ascii_lowercase()
            .contains("minute") =>
        {
            MINUTE
        }
        None => DEFAULT_DELAY,
    }
}

fn words(code: &str, message: &str, body: Option<&Value>) -> String {
    let scopes = body
        .and_then(|body| body["accessdenieddetail"]["requiredScopes"].as_array())
        .map(|scopes| {
            let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).take(10).collect();
            scopes.join(", ")
        });
    match scopes {
        Some(scopes) => format!(
            "the DingTalk app lacks the permission {scopes}: add it in the developer console under \
             Permission Management"
        ),
        None => format!("DingTalk refused the call: {message} (code {code})"),
    }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
