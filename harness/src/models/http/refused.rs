//! A provider's refusal, inside an answer or instead of one, read in any of the forms that servers use.

use std::time::Duration;

use serde_json::Value;

use crate::models::ModelErrorKind;
use crate::models::classify::{Refusal, classify};

/// What a provider said when it refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::models) struct Refused {
    /// Its code or type, a word for programs.
    pub(in crate::models) code: String,
    /// Its words for people.
    pub(in crate::models) message: String,
    /// The status it names.
    pub(in crate::models) status: Option<u16>,
    /// The wait it asks for in the body.
    pub(in crate::models) retry_after: Option<Duration>,
}

impl Refused {
    /// Reads `error` as an object or a text, the flat `object: error`, and a list around any of them.
    pub(in crate::models) fn read(body: &Value) -> Option<Self> {
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
            retry_after: body.get("error").and_then(asked_wait),
        })
    }

    /// Reads the whole `body` of an answer whose status refuses: in the forms of [`Refused::read`], as the `detail` or `message` that
    /// servers without a form of their own send, or else as it stands.
    pub(in crate::models) fn read_body(body: &[u8]) -> Self {
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

    /// The class of the refusal, given the `status` and the `wait` around it. A provider that names a wait is only asked too
    /// fast, whatever it says about quotas, unless its code says that there is none left.
    pub(in crate::models) fn class(
        &self,
        status: Option<u16>,
        wait: Option<Duration>,
    ) -> ModelErrorKind {
        let status = status.or(self.status);
        let too_fast = status == Some(429)
            && self.retry_after.or(wait).is_some()
            && self.code != "insufficient_quota";
        match classify(Refusal {
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

/// The `retryDelay` among Google's error details, such as `34.5s`.
fn asked_wait(error: &Value) -> Option<Duration> {
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
    fn a_refusing_body_is_read_for_its_words_in_whatever_form_it_has_them() {
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
                Refused::read_body(body.as_bytes()).message,
                message,
                "{body}"
            );
        }
    }
}
