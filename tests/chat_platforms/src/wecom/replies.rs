//! Messages of the bot.

use serde_json::Value;

use super::rules::{
    IDLE, LIFETIME, Refusal, expired, invalid, only, text, too_many, unknown_request,
};
use super::state::{Shown, ShownKind, State, Stream};

/// Settings that the rules depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strictness {
    pub(super) rate_limits: bool,
    pub(super) silent_expiry: bool,
}

/// Answers a message with a stream: the same id each time, the whole text each time.
pub(super) fn respond(
    state: &mut State,
    connection: u64,
    req_id: &str,
    body: &Value,
    strictness: Strictness,
) -> Result<Value, Refusal> {
    only(body, &["msgtype", "stream"])?;
    if body["msgtype"] != "stream" {
        return Err(invalid("msgtype is not stream"));
    }
    let stream = &body["stream"];
    only(stream, &["id", "finish", "content", "msg_item", "feedback"])?;
    let id = stream["id"]
        .as_str()
        .filter(|id| !id.is_empty() && id.len() <= 64)
        .ok_or_else(|| invalid("stream.id"))?;
    let finish = stream["finish"]
        .as_bool()
        .ok_or_else(|| invalid("stream.finish"))?;
    let content = text(&stream["content"])?;
    if finish && content.is_empty() {
        return Err(invalid("stream.content is empty"));
    }
    let now = state.now();
    let question = state
        .questions
        .get(req_id)
        .filter(|question| question.connection == connection)
        .ok_or_else(unknown_request)?;
    let chat = question.chat.clone();
    let Some(open) = &question.stream else {
        if strictness.rate_limits && !state.count(&chat) {
            return Err(too_many());
        }
        let shown = state.shown.len();
        state.shown.push(Shown {
            chat,
            kind: ShownKind::Stream,
            content: content.to_owned(),
            finished: finish,
        });
        if let Some(question) = state.questions.get_mut(req_id) {
            question.stream = Some(Stream {
                id: id.to_owned(),
                begun: now,
                updated: now,
                shown,
            });
        }
        return Ok(Value::Null);
    };
    if open.id != id {
        return Err(invalid("the req_id has another stream"));
    }
    let shown = open.shown;
    let is_expired = now.duration_since(open.updated) >= IDLE
        || now.duration_since(open.begun) >= LIFETIME
        || state.shown[shown].finished;
    if is_expired {
        return if strictness.silent_expiry {
            Ok(Value::Null)
        } else {
            Err(expired())
        };
    }
    state.shown[shown].content = content.to_owned();
    state.shown[shown].finished = finish;
    if let Some(open) = state
        .questions
        .get_mut(req_id)
        .and_then(|question| question.stream.as_mut())
    {
        open.updated = now;
    }
    Ok(Value::Null)
}

/// Sends a message that answers none.
pub(super) fn push(
    state: &mut State,
    body: &Value,
    strictness: Strictness,
) -> Result<Value, Refusal> {
    let chat = body["chatid"]
        .as_str()
        .filter(|chat| state.chats.contains(*chat))
        .ok_or_else(|| Refusal::new(86_008, "no such conversation"))?
        .to_owned();
    let (kind, content) = match body["msgtype"].as_str() {
        Some("markdown") => {
            only(body, &["chatid", "msgtype", "markdown"])?;
            let content = text(&body["markdown"]["content"])?;
            if content.is_empty() {
                return Err(invalid("markdown.content is empty"));
            }
            (ShownKind::Markdown, content)
        }
        Some(kind @ ("file" | "image")) => {
            only(body, &["chatid", "msgtype", kind])?;
            let media = body[kind]["media_id"]
                .as_str()
                .filter(|id| state.uploads.media.contains_key(*id))
                .ok_or_else(|| Refusal::new(40_007, "invalid media_id"))?;
            (ShownKind::File, media)
        }
        _ => return Err(invalid("msgtype")),
    };
    if strictness.rate_limits && !state.count(&chat) {
        return Err(too_many());
    }
    state.shown.push(Shown {
        chat,
        kind,
        content: content.to_owned(),
        finished: true,
    });
    Ok(Value::Null)
}
