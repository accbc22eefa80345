//! Methods of streamed messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{Failure, Outcome};
use super::params::Params;
use super::workspace::{BOT_USER, ChannelKind, SlackMessage, Stream, Workspace};

/// Maximum length of `markdown_text` in characters.
const MAX_MARKDOWN: usize = 12_000;

/// Starts a stream.
pub(super) fn start(workspace: &mut Workspace, params: &Params, now: Instant) -> Outcome {
    let id = params.required("channel")?;
    let thread = params.required("thread_ts")?;
    let ts = workspace.next_ts();
    let channel = workspace.writable(&id)?;
    if channel.kind != ChannelKind::Im {
        for (field, error) in [
            ("recipient_team_id", "missing_recipient_team_id"),
            ("recipient_user_id", "missing_recipient_user_id"),
        ] {
            if params.text(field).is_none() {
                return Err(Failure::new(error));
            }
        }
    }
    if channel.message(&thread).is_none() {
        return Err(Failure::new("thread_not_found"));
    }
    let text = markdown(params)?.unwrap_or_default();
    let mut message = SlackMessage::new(ts.clone(), BOT_USER, &text, Some(thread));
    message.stream = Some(Stream {
        started: now,
        open: true,
    });
    channel.messages.push(message);
    Ok(json!({"channel": id, "ts": ts}))
}

/// Appends to a stream.
pub(super) fn append(
    workspace: &mut Workspace,
    params: &Params,
    now: Instant,
    lifetime: Duration,
) -> Outcome {
    let text = markdown(params)?
        .ok_or_else(|| Failure::argument("missing required field: markdown_text"))?;
    let message = streaming(workspace, params, now, lifetime)?;
    message.text.push_str(&text);
    Ok(answer(params, message))
}

/// Stops a stream.
pub(super) fn stop(
    workspace: &mut Workspace,
    params: &Params,
    now: Instant,
    lifetime: Duration,
) -> Outcome {
    let text = markdown(params)?.unwrap_or_default();
    let message = streaming(workspace, params, now, lifetime)?;
    message.text.push_str(&text);
    if let Some(blocks) = params
        .json("blocks")
        .and_then(|blocks| blocks.as_array().cloned())
    {
        message.blocks = blocks;
    }
    if let Some(metadata) = params.json("metadata") {
        message.metadata = metadata;
    }
    if let Some(stream) = &mut message.stream {
        stream.open = false;
    }
    Ok(answer(params, message))
}

/// Ends the streams that are too old.
pub(super) fn expire(message: &mut SlackMessage, now: Instant, lifetime: Duration) {
    if let Some(stream) = &mut message.stream {
        stream.open &= now.duration_since(stream.started) < lifetime;
    }
}

fn streaming<'a>(
    workspace: &'a mut Workspace,
    params: &Params,
    now: Instant,
    lifetime: Duration,
) -> Result<&'a mut SlackMessage, Failure> {
    let ts = params.required("ts")?;
    let channel = workspace.writable(&params.required("channel")?)?;
    let message = channel
        .message(&ts)
        .ok_or_else(|| Failure::new("message_not_found"))?;
    if message.user != BOT_USER {
        return Err(Failure::new("message_not_owned_by_app"));
    }
    expire(message, now, lifetime);
    if !message.streaming() {
        return Err(Failure::new("message_not_in_streaming_state"));
    }
    Ok(message)
}

/// Returns the text of a call: `markdown_text`, or the texts of its chunks.
fn markdown(params: &Params) -> Result<Option<String>, Failure> {
    let mut text = params.text("markdown_text");
    if let Some(chunks) = params.json("chunks") {
        let chunks = chunks.as_array().filter(|chunks| !chunks.is_empty());
        let chunks = chunks.ok_or_else(|| Failure::new("invalid_chunks"))?;
        for chunk in chunks {
            match (chunk["type"].as_str(), chunk["text"].as_str()) {
                (Some("markdown_text"), Some(part)) => text.get_or_insert_default().push_str(part),
                (Some("task_update" | "plan_update" | "blocks"), _) => {
                    text.get_or_insert_default();
                }
                _ => return Err(Failure::new("invalid_chunks")),
            }
        }
    }
    if text
        .as_ref()
        .is_some_and(|text| text.chars().count() > MAX_MARKDOWN)
    {
        return Err(Failure::new("msg_too_long"));
    }
    Ok(text)
}

fn answer(params: &Params, message: &SlackMessage) -> Value {
    json!({"channel": params.text("channel"), "ts": message.ts})
}
