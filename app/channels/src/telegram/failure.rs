//! Failures of Bot API calls and their meaning.

use std::time::Duration;

use serde_json::Value;

use crate::platform::PlatformError;

/// Delay after a rate limit that names none.
const DEFAULT_RETRY: Duration = Duration::from_secs(3);
/// Maximum length of a description in error texts, in characters.
const MAX_DESCRIPTION: usize = 300;

/// Failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Meaning.
    pub(super) problem: Problem,
    /// Words of the Bot API or of the transport, without the token.
    pub(super) description: String,
}

/// Meaning of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// Nothing may be sent to the chat until the delay has passed.
    RateLimited(Duration),
    /// An edit would not change the message.
    NotModified,
    /// The answered message does not exist any more.
    ReplyMissing,
    /// The topic does not exist any more.
    TopicMissing,
    /// The markup of the text is invalid.
    BadMarkup,
    /// The message cannot be edited any more.
    NotEditable,
    /// The group has a new id.
    Migrated(i64),
    /// The server does not have the method, or the token cannot be one.
    NotFound,
    /// The token is invalid.
    Unauthorized,
    /// Another process polls.
    OtherPoller,
    /// A webhook is set.
    Webhook,
    /// The bot may not write to the chat.
    Forbidden,
    /// A repetition would fail too.
    Refused,
    /// The server was not reached, failed, or its answer was lost.
    Unavailable,
}

impl Failure {
    /// Creates the failure of a call whose answer is unknown.
    pub(super) fn unavailable(description: impl Into<String>) -> Self {
        Self {
            problem: Problem::Unavailable,
            description: description.into(),
        }
    }

    /// Creates the failure of a call that cannot succeed.
    pub(super) fn refused(description: impl Into<String>) -> Self {
        Self {
            problem: Problem::Refused,
            description: description.into(),
        }
    }
}

impl From<Failure> for PlatformError {
    fn from(failure: Failure) -> Self {
        let description = failure.description;
        match failure.problem {
            Problem::RateLimited(retry_after) => Self::RateLimited {
                retry_after,
                account: false,
            },
            Problem::Unauthorized => Self::Rejected(format!(
                "telegram refused the bot token, enter the current one from BotFather: \
                 {description}"
            )),
            Problem::OtherPoller => Self::Displaced(
                "another program polls telegram with this bot token, stop it or use another bot"
                    .to_owned(),
            ),
            Problem::Unavailable | Problem::Webhook => {
                Self::Unavailable(format!("telegram is not available: {description}"))
            }
            Problem::Forbidden => Self::Refused(format!(
                "the bot may not write to this chat, unblock or add it: {description}"
            )),
            Problem::NotModified
            | Problem::ReplyMissing
            | Problem::TopicMissing
            | Problem::BadMarkup
            | Problem::NotEditable
            | Problem::Migrated(_)
            | Problem::NotFound
            | Problem::Refused => {
                Self::Refused(format!("telegram refused the call: {description}"))
            }
        }
    }
}

/// Decodes the answer to a call into its result.
pub(super) fn decode_answer(status: u16, body: &[u8]) -> Result<Value, Failure> {
    let body = String::from_utf8_lossy(body);
    let Ok(Value::Object(mut answer)) = serde_json::from_str::<Value>(&body) else {
        return Err(failure(status, &format!("status {status}"), &Value::Null));
    };
    if answer.get("ok") == Some(&Value::Bool(true)) && status < 400 {
        return Ok(answer.remove("result").unwrap_or_default());
    }
    let code = answer
        .get("error_code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(status);
    let description = answer
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("no description");
    let parameters = answer.get("parameters").unwrap_or(&Value::Null);
    Err(failure(code, description, parameters))
}

fn failure(code: u16, description: &str, parameters: &Value) -> Failure {
    Failure {
        problem: problem(code, description, parameters),
        description: description.chars().take(MAX_DESCRIPTION).collect(),
    }
}

/// Decides about the meaning of an error code with its description and parameters.
fn problem(code: u16, description: &str, parameters: &Value) -> Problem {
    let words = description.to_lowercase();
    let has = |any: &[&str]| any.iter().any(|part| words.contains(part));
    match code {
        429 => Problem::RateLimited(retry_after(&words, parameters)),
        401 => Problem::Unauthorized,
        404 => Problem::NotFound,
        409 if has(&["webhook"]) => Problem::Webhook,
        409 => Problem::OtherPoller,
        403 => Problem::Forbidden,
        400 => match parameters.get("migrate_to_chat_id").and_then(Value::as_i64) {
            Some(to) => Problem::Migrated(to),
            None if has(&["message is not modified"]) => Problem::NotModified,
            None if has(&[
                "message to be replied not found",
                "replied message not found",
                "message to reply not found",
            ]) =>
            {
                Problem::ReplyMissing
            }
            None if has(&[
                "message thread not found",
                "topic_deleted",
                "topic_id_invalid",
            ]) =>
            {
                Problem::TopicMissing
            }
            None if has(&["can't parse entities", "can't parse message text"]) => {
                Problem::BadMarkup
            }
            None if has(&[
                "message to edit not found",
                "message can't be edited",
                "no text in the message to edit",
                "message_id_invalid",
            ]) =>
            {
                Problem::NotEditable
            }
            None => Problem::Refused,
        },
        // An answer with another status and a description is a decision of the server.
        405..=499 => Problem::Refused,
        _ => Problem::Unavailable,
    }
}

/// Returns the delay of a rate limit: the parameter, else the number in the description.
fn retry_after(words: &str, parameters: &Value) -> Duration {
    let named = parameters.get("retry_after").and_then(Value::as_f64);
    let written = || {
        let rest = words.split_once("retry after ")?.1;
        let end = rest
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse::<f64>().ok()
    };
    named
        .or_else(written)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(DEFAULT_RETRY)
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
