//! Methods of messages and reactions.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::answer::{Failure, Outcome};
use super::options::DuplicateAnswer;
use super::params::Params;
use super::workspace::{BOT_USER, SlackMessage, Workspace};

/// Maximum length of a posted text in characters.
const MAX_POST: usize = 40_000;
/// Maximum length of an updated text in bytes, after escaping.
const MAX_UPDATE: usize = 4_000;

/// Posts a message.
pub(super) fn post(
    workspace: &mut Workspace,
    params: &Params,
    duplicates: DuplicateAnswer,
) -> Outcome {
    let id = params.required("channel")?;
    let ts = workspace.next_ts();
    let channel = workspace.writable(&id)?;
    let key = params.text("client_msg_id");
    if let Some(key) = key
        .as_ref()
        .filter(|_| duplicates != DuplicateAnswer::Ignored)
    {
        let same = |message: &&SlackMessage| message.client_msg_id.as_ref() == Some(key);
        if let Some(existing) = channel.messages.iter().find(same) {
            if existing.deleted || duplicates == DuplicateAnswer::NotFound {
                return Err(Failure::new("duplicate_message_not_found"));
            }
            return Ok(json!({"channel": id, "ts": existing.ts, "message": existing.view(false)}));
        }
    }
    let (text, blocks) = content(params)?;
    if text.chars().count() > MAX_POST {
        return Err(Failure::new("msg_too_long"));
    }
    let thread = params.text("thread_ts");
    if thread
        .as_ref()
        .is_some_and(|thread| channel.message(thread).is_none())
    {
        return Err(Failure::new("thread_not_found"));
    }
    let mut message = SlackMessage::new(ts.clone(), BOT_USER, &text, thread);
    message.blocks = blocks;
    message.client_msg_id = key;
    message.metadata = params.json("metadata").unwrap_or(Value::Null);
    let view = message.view(false);
    channel.messages.push(message);
    Ok(json!({"channel": id, "ts": ts, "message": view}))
}

/// Shows a text to one person.
pub(super) fn post_ephemeral(workspace: &mut Workspace, params: &Params) -> Outcome {
    let ts = workspace.next_ts();
    workspace.writable(&params.required("channel")?)?;
    params.required("user")?;
    content(params)?;
    Ok(json!({"message_ts": ts}))
}

/// Updates a message.
pub(super) fn update(workspace: &mut Workspace, params: &Params) -> Outcome {
    let id = params.required("channel")?;
    let ts = params.required("ts")?;
    let channel = workspace.writable(&id)?;
    let message = own(channel.message(&ts))?;
    if message.streaming() {
        return Err(Failure::new("streaming_state_conflict"));
    }
    let removes_blocks = params.json("blocks") == Some(json!([]));
    let (text, blocks) = content(params)?;
    if escaped_length(&text) > MAX_UPDATE {
        return Err(Failure::new("msg_too_long"));
    }
    message.text.clone_from(&text);
    if removes_blocks || !blocks.is_empty() {
        message.blocks = blocks;
    }
    if let Some(metadata) = params.json("metadata") {
        message.metadata = metadata;
    }
    message.edits += 1;
    Ok(json!({"channel": id, "ts": ts, "text": text, "message": message.view(false)}))
}

/// Deletes a message.
pub(super) fn delete(workspace: &mut Workspace, params: &Params) -> Outcome {
    let id = params.required("channel")?;
    let ts = params.required("ts")?;
    let message = own(workspace.writable(&id)?.message(&ts))?;
    message.deleted = true;
    Ok(json!({"channel": id, "ts": ts}))
}

/// Adds or removes a reaction.
pub(super) fn react(workspace: &mut Workspace, params: &Params, adds: bool) -> Outcome {
    let name = params.required("name")?;
    let is_name = |letter: char| letter.is_ascii_lowercase() || "0123456789_+-".contains(letter);
    if !name.chars().all(is_name) {
        return Err(Failure::new("invalid_name"));
    }
    let ts = params.required("timestamp")?;
    let channel = workspace.writable(&params.required("channel")?)?;
    let message = channel
        .message(&ts)
        .ok_or_else(|| Failure::new("message_not_found"))?;
    let present = message.reactions.contains(&name);
    match (adds, present) {
        (true, true) => return Err(Failure::new("already_reacted")),
        (false, false) => return Err(Failure::new("no_reaction")),
        (true, false) => message.reactions.push(name),
        (false, true) => message.reactions.retain(|reaction| *reaction != name),
    }
    Ok(json!({}))
}

fn own(message: Option<&mut SlackMessage>) -> Result<&mut SlackMessage, Failure> {
    let message = message.ok_or_else(|| Failure::new("message_not_found"))?;
    if message.user != BOT_USER {
        return Err(Failure::new("cant_update_message"));
    }
    Ok(message)
}

/// Returns the text and the blocks of a call.
fn content(params: &Params) -> Result<(String, Vec<Value>), Failure> {
    let text = params.text("text");
    let markdown = params.text("markdown_text");
    let blocks = match params.json("blocks") {
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(Failure::new("invalid_blocks_format")),
        None if params.text("blocks").is_some() => {
            return Err(Failure::new("invalid_blocks_format"));
        }
        None => Vec::new(),
    };
    if blocks.len() > 50 || !blocks.iter().all(valid_block) {
        return Err(Failure::new("invalid_blocks"));
    }
    match (text, markdown) {
        (Some(_), Some(_)) => Err(Failure::new("markdown_text_conflict")),
        (None, Some(_)) if !blocks.is_empty() => Err(Failure::new("markdown_text_conflict")),
        (None, None) if blocks.is_empty() => Err(Failure::new("no_text")),
        (text, markdown) => Ok((text.or(markdown).unwrap_or_default(), blocks)),
    }
}

fn valid_block(block: &Value) -> bool {
    let text_of = |value: &Value, kind: &str, max: usize| {
        value["type"] == kind
            && value["text"]
                .as_str()
                .is_some_and(|text| (1..=max).contains(&text.chars().count()))
    };
    match block["type"].as_str() {
        Some("section") => text_of(&block["text"], "mrkdwn", 3_000),
        Some("markdown") => block["text"]
            .as_str()
            .is_some_and(|text| text.len() <= 12_000),
        Some("divider") => true,
        Some("actions") => {
            let Some(elements) = block["elements"].as_array() else {
                return false;
            };
            let ids: HashSet<_> = elements
                .iter()
                .map(|element| &element["action_id"])
                .collect();
            let button = |element: &Value| {
                element["type"] == "button"
                    && text_of(&element["text"], "plain_text", 75)
                    && element["action_id"]
                        .as_str()
                        .is_some_and(|id| id.len() <= 255)
                    && element["value"]
                        .as_str()
                        .is_none_or(|value| value.len() <= 2_000)
            };
            (1..=25).contains(&elements.len())
                && ids.len() == elements.len()
                && elements.iter().all(button)
        }
        _ => false,
    }
}

/// Returns the length in bytes after an `&` that begins no entity is escaped.
fn escaped_length(text: &str) -> usize {
    let bare = text
        .match_indices('&')
        .filter(|(at, _)| {
            let rest = &text[at + 1..];
            !["amp;", "lt;", "gt;"]
                .iter()
                .any(|entity| rest.starts_with(entity))
        })
        .count();
    text.len() + 4 * bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_ampersands_count_as_entities() {
        assert_eq!(escaped_length("a&b"), 7);
        assert_eq!(escaped_length("a&amp;b"), 7);
        assert_eq!(escaped_length("é"), 2);
    }

    #[test]
    fn buttons_with_the_same_action_id_are_refused() {
        let button = |id: &str| {
            json!({"type": "button", "action_id": id, "value": "x",
                   "text": {"type": "plain_text", "text": "Yes"}})
        };
        let actions = |ids: [&str; 2]| json!({"type": "actions", "elements": ids.map(button)});
        assert!(valid_block(&actions(["a", "b"])));
        assert!(!valid_block(&actions(["a", "a"])));
    }
}
