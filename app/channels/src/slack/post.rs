//! New messages.

use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Api, Body};
use super::blocks;
use super::budget::Urgency;
use super::failure::Failure;
use super::text::is_timestamp;
use crate::platform::{Button, Target};

/// Type of the metadata with which messages are found again.
const METADATA: &str = "deerflow_message";
/// Codes of a thread that is gone.
const NO_THREAD: &[&str] = &[
    "thread_not_found",
    "invalid_thread_ts",
    "cannot_reply_to_message",
    "message_not_found",
];
/// Codes of blocks that Slack does not accept.
const NO_BLOCKS: &[&str] = &["invalid_blocks", "invalid_blocks_format", "block_mismatch"];
/// Codes of a key that was used before, by a message that cannot be returned.
const SENT_BEFORE: &[&str] = &["duplicate_message_not_found"];

/// Text of a message, with buttons.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    /// Text in mrkdwn.
    pub(super) markup: &'a str,
    /// Buttons.
    pub(super) buttons: &'a [Button],
}

impl Words<'_> {
    fn set(&self, body: &mut Value) {
        body["text"] = json!(self.markup);
        if !self.buttons.is_empty() {
            body["blocks"] = blocks::with_buttons(self.markup, self.buttons);
        }
    }

    fn set_without_blocks(&self, body: &mut Value) {
        body["text"] = json!(blocks::as_text(self.markup, self.buttons));
        body["blocks"] = json!([]);
    }
}

/// Returns the thread of an answer.
pub(super) fn thread_of(target: &Target) -> Option<&str> {
    let of_context = target.context["thread"].as_str();
    let thread = target.topic.as_deref().or(of_context);
    thread.filter(|thread| is_timestamp(thread))
}

/// Posts a message and returns its timestamp; `None` if it was posted before and is gone.
pub(super) async fn post(
    api: &Api,
    target: &Target,
    words: Words<'_>,
    key: Uuid,
) -> Result<Option<String>, Failure> {
    let mut body = json!({
        "channel": target.chat.id,
        "client_msg_id": key.to_string(),
        "metadata": {"event_type": METADATA, "event_payload": {"key": key.to_string()}},
        // A link in a text of the model must cause no request.
        "unfurl_links": false,
        "unfurl_media": false,
    });
    words.set(&mut body);
    if let Some(thread) = thread_of(target) {
        body["thread_ts"] = json!(thread);
    }
    let mut result = api.call("chat.postMessage", Body::Json(body.clone())).await;
    if matches!(&result, Err(failure) if failure.is(NO_BLOCKS)) && !words.buttons.is_empty() {
        words.set_without_blocks(&mut body);
        result = api.call("chat.postMessage", Body::Json(body.clone())).await;
    }
    if matches!(&result, Err(failure) if failure.is(NO_THREAD)) && body["thread_ts"].is_string() {
        body["thread_ts"] = Value::Null;
        result = api.call("chat.postMessage", Body::Json(body)).await;
    }
    match result {
        Ok(answer) => Ok(answer["ts"].as_str().map(str::to_owned)),
        Err(failure) if failure.is(SENT_BEFORE) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Replaces the text and the buttons of a message.
pub(super) async fn put(
    api: &Api,
    channel: &str,
    ts: &str,
    words: Words<'_>,
    urgency: Urgency,
) -> Result<(), Failure> {
    let mut body = json!({"channel": channel, "ts": ts, "blocks": []});
    words.set(&mut body);
    let result = api
        .budgeted("chat.update", urgency, Body::Json(body.clone()))
        .await;
    let refused = matches!(&result, Err(failure) if failure.is(NO_BLOCKS));
    if !refused || words.buttons.is_empty() {
        return result.map(drop);
    }
    words.set_without_blocks(&mut body);
    api.budgeted("chat.update", urgency, Body::Json(body))
        .await
        .map(drop)
}

/// Looks for a message that an earlier attempt posted. A failure counts as not found.
pub(super) async fn find(api: &Api, target: &Target, key: Uuid) -> Option<String> {
    let mut fields = vec![
        ("channel", target.chat.id.clone()),
        ("limit", "200".to_owned()),
        ("include_all_metadata", "true".to_owned()),
    ];
    let asked = target.reply_to.as_deref().filter(|ts| is_timestamp(ts));
    if let Some(oldest) = asked {
        fields.push(("oldest", oldest.to_owned()));
    }
    let method = match thread_of(target) {
        Some(thread) => {
            fields.push(("ts", thread.to_owned()));
            "conversations.replies"
        }
        None => "conversations.history",
    };
    let answer = api
        .budgeted(method, Urgency::Final, Body::Form(fields))
        .await
        .ok()?;
    find_in(&answer, &key.to_string())
}

fn find_in(answer: &Value, key: &str) -> Option<String> {
    let found = answer["messages"].as_array()?.iter().find(|message| {
        let metadata = &message["metadata"];
        let has_key = metadata["event_type"] == METADATA && metadata["event_payload"]["key"] == key;
        has_key || message["client_msg_id"] == key
    })?;
    found["ts"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_found_by_its_key() {
        let answer = json!({"messages": [
            7,
            {"ts": "1.1", "client_msg_id": "other"},
            {"ts": "1.2", "metadata": {"event_type": METADATA, "event_payload": {"key": "k"}}},
        ]});
        assert_eq!(find_in(&answer, "k"), Some("1.2".to_owned()));
        assert_eq!(find_in(&answer, "other"), Some("1.1".to_owned()));
        assert_eq!(find_in(&answer, "x"), None);
        assert_eq!(find_in(&json!({"messages": 1}), "k"), None);
    }
}
