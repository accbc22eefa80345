//! Small calls: actions, reactions, answers to presses, and the command list.

use serde_json::{Value, json};

use super::entities::units;
use super::failure::ApiFailure;
use super::params::Params;
use super::shared::Shared;

/// Actions that a chat shows.
const ACTIONS: &[&str] = &["typing", "upload_photo", "upload_document"];
/// Some of the emoji that the Bot API accepts as reactions.
const REACTIONS: &[&str] = &[
    "👍", "👎", "❤", "🔥", "👏", "🤔", "🎉", "👀", "👌", "✍", "😢",
];

/// Shows an action in a chat.
pub(super) fn chat_action(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let topic = params.int("message_thread_id")?;
    let action = params.text("action").unwrap_or_default();
    if !ACTIONS.contains(&action) {
        return Err(ApiFailure::bad("wrong parameter action in request"));
    }
    shared.change(|world| {
        let now = shared.now();
        let room = world.reachable(chat)?;
        if topic.is_some_and(|topic| !room.topics.contains(&topic)) {
            return Err(ApiFailure::bad("message thread not found"));
        }
        world.limits.any(now).map_err(ApiFailure::too_many)?;
        Ok(json!(true))
    })
}

/// Sets the bot's reactions to a message.
pub(super) fn reaction(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let id = params.required_int("message_id")?;
    let reactions: Vec<String> = params
        .json("reaction")?
        .unwrap_or_default()
        .as_array()
        .into_iter()
        .flatten()
        .map(|reaction| reaction["emoji"].as_str().unwrap_or_default().to_owned())
        .collect();
    if reactions.len() > 1 {
        return Err(ApiFailure::bad("REACTIONS_TOO_MANY"));
    }
    if reactions
        .iter()
        .any(|emoji| !REACTIONS.contains(&emoji.as_str()))
    {
        return Err(ApiFailure::bad("REACTION_INVALID"));
    }
    shared.change(|world| {
        let now = shared.now();
        let room = world.reachable(chat)?;
        let post = room
            .posts
            .get_mut(&id)
            .ok_or_else(|| ApiFailure::bad("message to react not found"))?;
        post.reactions = reactions;
        world.limits.any(now).map_err(ApiFailure::too_many)?;
        Ok(json!(true))
    })
}

/// Answers the press of a button, once.
pub(super) fn answer_press(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let id = params.text("callback_query_id").unwrap_or_default();
    let text = params.text("text").unwrap_or_default();
    if units(text) > 200 {
        return Err(ApiFailure::bad("MESSAGE_TOO_LONG"));
    }
    shared.change(|world| {
        let press = world
            .presses
            .get_mut(id)
            .filter(|press| !press.answered)
            .ok_or_else(|| {
                ApiFailure::bad(
                    "query is too old and response timeout expired or query ID is invalid",
                )
            })?;
        press.answered = true;
        text.clone_into(&mut press.text);
        Ok(json!(true))
    })
}

/// Sets the command list.
pub(super) fn set_commands(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let commands = params
        .json("commands")?
        .filter(Value::is_array)
        .ok_or_else(|| ApiFailure::bad("can't parse commands JSON object"))?;
    let listed = commands.as_array().map_or(&[][..], Vec::as_slice);
    if listed.len() > 100 {
        return Err(ApiFailure::bad("BOT_COMMANDS_TOO_MUCH"));
    }
    for command in listed {
        let name = command["command"].as_str().unwrap_or_default();
        let description = command["description"].as_str().unwrap_or_default();
        let is_valid = (1..=32).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_valid {
            return Err(ApiFailure::bad("BOT_COMMAND_INVALID"));
        }
        if !(1..=256).contains(&units(description)) {
            return Err(ApiFailure::bad("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
    }
    shared.change(|world| world.commands = commands);
    Ok(json!(true))
}
