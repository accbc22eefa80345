//! Error of a provider, inside an answer or as an error response, in any of the forms that servers
//! use.

use std::time::Duration;

use serde_json::Value;

use crate::ModelErrorKind;
use crate::classify::{ErrorReport, classify};

/// Error that a provider reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderError {
    /// Error code or type.
    pub(crate) code: String,
    /// Error message.
    pub(crate) message: String,
    /// Status in the body.
    pub(crate) status: Option<u16>,
    /// Retry delay in the body.
    pub(crate) retry_after: Option<Duration>,
}

impl ProviderError {
    /// Parses `error` as an object or a text, the flat form `object: error`, or a list around any
    /// of them. Returns `None` if there is no error.
    pub(crate) fn read(body: &Value) -> Option<Self> {
        let body = body
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(body);
        let field = |key: &str| body.get(key).filter(|value| !value.is_null());
        let (code, message, kind) = match field("error") {
            Some(Value::Object(error)) => (
                error.get("code"),
                error.get("message"),
                error.get("type").or(error.get("status")),
            ),
            Some(error @ Value::String(_)) => (field("code"), Some(error), None),
            None if ["object", "type"]
                .iter()
                .any(|key| field(key).is_some_and(|word| word == "error")) =>
            {
                (field("code"), field("message"), None)
            }
            _ => return None,
        };
        let code = code.filter(|code| !code.is_null()).or(kind);
        let word = if code.is_none_or(|code| !code.is_string()) {
            kind.or(code)
        } else {
            code
        };
        let status = code
            .and_then(Value::as_u64)
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| (400..600).contains(status));
        let message = Some(text(message))
            .filter(|message| !message.is_empty())
            .unwrap_or_else(|| "the provider reported an error".to_owned());
        Some(Self {
            code: text(word),
            message,
            status,
            retry_after: body.get("error").and_then(retry_delay),
        })
    }

    /// Parses the `body` of an error response: in the forms of [`ProviderError::read`], as the
    /// `detail` or `message` of other servers, or else as plain text.
    pub(crate) fn read_body(body: &[u8]) -> Self {
        let json: Option<Value> = serde_json::from_slice(body).ok();
        let plain = |json: &Value| {
            ["detail", "message"]
                .iter()
                .find_map(|key| json.get(key)?.as_str())
                .map(str::to_owned)
        };
        json.as_ref().and_then(Self::read).unwrap_or_else(|| {
            let message = json
                .as_ref()
                .and_then(plain)
                .unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
            Self {
                message,
                ..Self::default()
            }
        })
    }

    /// Returns the class of the error. `status` and `wait` are the status and the retry delay of
    /// its response. A status 429 with a retry delay is a rate limit, even if the message mentions
    /// quotas, unless the code states that the quota is used up.
    pub(crate) fn kind(&self, status: Option<u16>, wait: Option<Duration>) -> ModelErrorKind {
        let status = status.or(self.status);
        let too_fast = status == Some(429)
            && self.retry_after.or(wait).is_some()
            && self.code != "insufficient_quota";
        match classify(ErrorReport {
            status,
            code: &self.code,
            message: &self.message,
        }) {
            ModelErrorKind::Quota | ModelErrorKind::Auth if too_fast => ModelErrorKind::Transient,
            kind => kind,
        }
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns the `retryDelay` in Google's error details, such as `34.5s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_body_message_is_found_in_every_form() {
        for (body, message) in [
            (
                r#"{"error": {"message": "no such model", "type": "not_found"}}"#,
                "no such model",
            ),
            (
                r#"{"detail": "the token is too old"}"#,
                "the token is too old",
            ),
            (
                r#"{"message": "come later", "request_id": "7"}"#,
                "come later",
            ),
            (
                r#"{"detail": [{"loc": ["body"]}]}"#,
                r#"{"detail": [{"loc": ["body"]}]}"#,
            ),
            ("<h1>Bad gateway</h1>\n", "<h1>Bad gateway</h1>"),
            ("", ""),
        ] {
            assert_eq!(
                ProviderError::read_body(body.as_bytes()).message,
                message,
                "{body}"
            );
        }
    }
}
