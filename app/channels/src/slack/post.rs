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
        "metadata": metadata(key),
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

/// Returns the metadata of a message with a key.
pub(super) fn metadata(key: Uuid) -> Value {
    json!({"event_type": METADATA, "event_payload": {"key": key.to_string()}})
}

/// Replaces the text and the buttons of a message. `key` marks the final text of an answer;
/// without it the metadata is unchanged.
pub(super) async fn put(
    api: &Api,
    channel: &str,
    ts: &str,
    words: Words<'_>,
    key: Option<Uuid>,
) -> Result<(), Failure> {
    let urgency = key.map_or(Urgency::Live, |_| Urgency::Final);
    let mut body = json!({"channel": channel, "ts": ts, "blocks": []});
    if let Some(key) = key {
        body["metadata"] = metadata(key);
    }
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

/// Searches for a message that an earlier attempt posted. A failure counts as not found.
pub(super) async fn find(api: &Api, target: &Target, key: Uuid) -> Option<String> {
    let found = answers(api, target).await.ok()?;
    find_in(&found, &key.to_string())
}

/// Returns a page of the messages that were written after the message that the target answers, in
/// its thread or channel.
pub(super) async fn answers(api: &Api, target: &Target) -> Result<Value, Failure> {
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
    api.budgeted(method, Urgency::Final, Body::Form(fields))
        .await
}

/// Returns the timestamp of the message with a key.
pub(super) fn find_in(answer: &Value, key: &str) -> Option<String> {
    let found = answer["messages"].as_array()?.iter().find(|message| {
        let has_key = is_marked(message) && message["metadata"]["event_payload"]["key"] == key;
        has_key || message["client_msg_id"] == key
    })?;
    found["ts"].as_str().map(str::to_owned)
}

/// Returns the timestamp of a stream of the bot `user` that was begun and never completed: its
/// message carries no key, because streams get theirs with the final text, and `text` extends it.
pub(super) fn find_stream(answer: &Value, user: &str, text: &str) -> Option<String> {
    let text = letters(text);
    let found = answer["messages"].as_array()?.iter().find(|message| {
        let shown = letters(message["text"].as_str().unwrap_or_default());
        message["user"] == user
            && message["subtype"].is_null()
            && !is_marked(message)
            && !shown.is_empty()
            && text.starts_with(&shown)
    })?;
    found["ts"].as_str().map(str::to_owned)
}

fn is_marked(message: &Value) -> bool {
    message["metadata"]["event_type"] == METADATA
}

/// Returns the letters and digits of a text. Slack changes marks and spaces of what is streamed,
/// and escapes some characters.
fn letters(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">");
    let letters = plain.replace("&amp;", "&");
    letters
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_stream_is_found_by_the_text_that_extends_it() {
        let stream = |ts: &str, text: &str| json!({"ts": ts, "user": "UB", "text": text});
        let mut marked = stream("1.3", "Hel");
        marked["metadata"] = metadata(Uuid::nil());
        let mut file = stream("1.4", "Hel");
        file["subtype"] = json!("file_share");
        let mut of_person = stream("1.5", "Hel");
        of_person["user"] = json!("U1");
        let others = [
            marked,
            file,
            of_person,
            stream("1.6", ""),
            stream("1.7", "No"),
        ];
        let mut messages = others.to_vec();
        let text = "**Hello** world";
        assert_eq!(
            find_stream(&json!({"messages": messages}), "UB", text),
            None
        );
        messages.push(stream("1.8", "*Hello* wo"));
        assert_eq!(
            find_stream(&json!({"messages": messages}), "UB", text),
            Some("1.8".to_owned())
        );
    }

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
