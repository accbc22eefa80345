//! Failures of the Web API and their meaning.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::platform::PlatformError;

/// Delay after a rate limit without a delay.
const DEFAULT_RETRY: Duration = Duration::from_secs(5);
/// Delay after a refused `apps.connections.open` without a delay.
const DEFAULT_CONNECT_RETRY: Duration = Duration::from_secs(30);
/// Maximum delay that is obeyed.
const MAX_RETRY: Duration = Duration::from_secs(24 * 3600);

/// Failure of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Slack refused the call with a code.
    Code {
        /// Code.
        code: String,
        /// Scope that is missing.
        needed: Option<String>,
    },
    /// Rate limit of Slack.
    Limited(Duration),
    /// The budget of the method is used up; the call was not made.
    Held(Duration),
    /// No valid answer arrived; the call may have had its effect.
    Lost(String),
}

impl Failure {
    /// Returns `true` for one of these codes.
    pub(super) fn is(&self, codes: &[&str]) -> bool {
        matches!(self, Self::Code { code, .. } if codes.contains(&code.as_str()))
    }
}

/// Decodes an answer: its body, or the failure.
pub(super) fn decode(
    method: &str,
    status: StatusCode,
    retry_after: Option<&str>,
    body: &[u8],
) -> Result<Value, Failure> {
    let limited = || {
        let named = retry_after
            .and_then(|text| text.trim().parse::<f64>().ok())
            .filter(|seconds| *seconds >= 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let default = if method == "apps.connections.open" {
            DEFAULT_CONNECT_RETRY
        } else {
            DEFAULT_RETRY
        };
        Failure::Limited(named.unwrap_or(default).min(MAX_RETRY))
    };
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(limited());
    }
    let answer = serde_json::from_slice::<Value>(body).unwrap_or(Value::Null);
    if answer["ok"] == true && status.is_success() {
        return Ok(answer);
    }
    let Some(code) = answer["error"]
        .as_str()
        .filter(|_| !status.is_server_error())
    else {
        if status == StatusCode::NOT_FOUND {
            return Err(Failure::Code {
                code: "unknown_method".to_owned(),
                needed: None,
            });
        }
        return Err(Failure::Lost(format!(
            "slack answered {method} with status {} and no result",
            status.as_u16()
        )));
    };
    match code {
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => Err(limited()),
        "internal_error"
        | "fatal_error"
        | "service_unavailable"
        | "request_timeout"
        | "team_added_to_org" => Err(Failure::Lost(format!("slack failed with {code}"))),
        _ => Err(Failure::Code {
            code: code.chars().take(100).collect(),
            needed: answer["needed"]
                .as_str()
                .map(|scope| scope.chars().take(100).collect()),
        }),
    }
}

/// Returns the error of a failed call.
pub(super) fn platform_error(method: &str, failure: Failure) -> PlatformError {
    let (code, needed) = match failure {
        Failure::Limited(retry_after) | Failure::Held(retry_after) => {
            return PlatformError::RateLimited {
                retry_after,
                account: false,
            };
        }
        Failure::Lost(problem) => return PlatformError::Unavailable(problem),
        Failure::Code { code, needed } => (code, needed),
    };
    let is_final = matches!(
        code.as_str(),
        "invalid_auth"
            | "not_authed"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "not_allowed_token_type"
            | "org_login_required"
            | "team_access_not_granted"
    );
    if is_final {
        let token = if method == "apps.connections.open" {
            "app_token"
        } else {
            "bot_token"
        };
        return PlatformError::Rejected(format!(
            "slack rejected the {token} with {code}: enter a valid token of the app"
        ));
    }
    let words = match code.as_str() {
        "missing_scope" => {
            let scope = needed.unwrap_or_else(|| "of this call".to_owned());
            format!("the token lacks the scope {scope}: add it and install the app again")
        }
        "not_in_channel" => "the bot is not in the channel: invite it".to_owned(),
        "channel_not_found" => "the channel does not exist or the bot cannot see it".to_owned(),
        "is_archived" => "the channel is archived".to_owned(),
        "msg_too_long" => "the text is too long for slack".to_owned(),
        "restricted_action" => "the workspace does not allow the bot to write here".to_owned(),
        other => format!("slack refused {method} with {other}"),
    };
    // Without its scope the app token opens no connection, however often it tries.
    if method == "apps.connections.open" {
        PlatformError::Rejected(words)
    } else {
        PlatformError::Refused(words)
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
