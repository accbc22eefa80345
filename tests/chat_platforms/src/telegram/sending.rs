//! Texts of the bot: messages, edits and drafts.

use serde_json::{Value, json};

use super::entities::{Formatted, MAX_TEXT, parse_html, units};
use super::failure::ApiFailure;
use super::params::Params;
use super::shared::Shared;
use super::world::{Draft, Posted, Room, World};

/// Maximum length of a rich message in UTF-16 units.
const MAX_RICH: usize = 32_768;

/// Sends a text or a rich message.
pub(super) fn send_message(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let (source, formatted) = content(params)?;
    let keyboard = keyboard(params)?;
    shared.change(|world| {
        let place = place(world, params, chat)?;
        count(world, shared, chat)?;
        let mut post = world.new_post(chat, world.bot_id);
        post.text = formatted.text;
        post.entities = formatted.entities;
        post.source = source;
        post.keyboard = keyboard;
        Ok(publish(world, chat, post, place))
    })
}

/// Place of a new message.
pub(super) struct Place {
    topic: Option<i64>,
    reply_to: Option<i64>,
}

/// Checks the chat, the topic and the answered message of a new message.
pub(super) fn place(world: &mut World, params: &Params, chat: i64) -> Result<Place, ApiFailure> {
    let topic = params.int("message_thread_id")?;
    let reply = params.json("reply_parameters")?;
    let room = world.reachable(chat)?;
    check_topic(room, topic)?;
    let mut reply_to = None;
    if let Some(reply) = reply {
        let id = reply["message_id"]
            .as_i64()
            .ok_or_else(|| ApiFailure::bad("can't parse reply parameters"))?;
        if room.posts.contains_key(&id) {
            reply_to = Some(id);
        } else if reply["allow_sending_without_reply"] != json!(true) {
            return Err(ApiFailure::bad("message to be replied not found"));
        }
    }
    Ok(Place { topic, reply_to })
}

fn check_topic(room: &Room, topic: Option<i64>) -> Result<(), ApiFailure> {
    match topic {
        Some(topic) if !room.topics.contains(&topic) => {
            Err(ApiFailure::bad("message thread not found"))
        }
        _ => Ok(()),
    }
}

/// Counts a message or an edit against the limits.
pub(super) fn count(world: &mut World, shared: &Shared, chat: i64) -> Result<(), ApiFailure> {
    world
        .limits
        .message(chat, shared.now())
        .map_err(ApiFailure::too_many)
}

/// Adds a message to its chat, which ends the draft there, and returns its JSON.
pub(super) fn publish(world: &mut World, chat: i64, mut post: Posted, place: Place) -> Value {
    post.topic = place.topic;
    post.reply_to = place.reply_to;
    let message = world.message(chat, &post);
    let room = world.room(chat);
    room.draft = room.draft.take().filter(|draft| draft.topic != post.topic);
    room.posts.insert(post.id, post);
    message
}

/// Returns the source and the parsed text of a call.
fn content(params: &Params) -> Result<(String, Formatted), ApiFailure> {
    if let Some(rich) = params.json("rich_message")? {
        let forms: Vec<&str> = ["markdown", "html"]
            .iter()
            .filter_map(|form| rich[*form].as_str())
            .collect();
        let [source] = forms[..] else {
            return Err(ApiFailure::bad(
                "exactly one form of rich message is expected",
            ));
        };
        check_length(source, MAX_RICH)?;
        let formatted = Formatted {
            text: source.to_owned(),
            entities: Vec::new(),
        };
        return Ok((source.to_owned(), formatted));
    }
    let source = params.text("text").unwrap_or_default().to_owned();
    let formatted = formatted(params, &source)?;
    check_length(&formatted.text, MAX_TEXT)?;
    Ok((source, formatted))
}

fn check_length(text: &str, max: usize) -> Result<(), ApiFailure> {
    if text.is_empty() {
        return Err(ApiFailure::bad("message text is empty"));
    }
    if units(text) > max {
        return Err(ApiFailure::bad("message is too long"));
    }
    Ok(())
}

/// Parses a text in the mode of the call.
pub(super) fn formatted(params: &Params, source: &str) -> Result<Formatted, ApiFailure> {
    let mut formatted = match params.text("parse_mode").unwrap_or_default() {
        "" => Formatted {
            text: source.to_owned(),
            entities: Vec::new(),
        },
        mode if mode.eq_ignore_ascii_case("html") => parse_html(source)
            .map_err(|problem| ApiFailure::bad(format!("can't parse entities: {problem}")))?,
        _ => return Err(ApiFailure::bad("unsupported parse_mode")),
    };
    formatted.text = formatted.text.trim_end().to_owned();
    if formatted.text.chars().all(char::is_whitespace) {
        formatted.text.clear();
    }
    Ok(formatted)
}

/// Returns the checked inline keyboard of a call; null without one.
pub(super) fn keyboard(params: &Params) -> Result<Value, ApiFailure> {
    let Some(markup) = params.json("reply_markup")? else {
        return Ok(Value::Null);
    };
    let Some(rows) = markup["inline_keyboard"].as_array() else {
        return Ok(Value::Null);
    };
    for row in rows {
        let buttons = row
            .as_array()
            .ok_or_else(|| ApiFailure::bad("can't parse inline keyboard button"))?;
        for button in buttons {
            if button["text"].as_str().unwrap_or_default().is_empty() {
                return Err(ApiFailure::bad("inline keyboard button text is empty"));
            }
            let data = button["callback_data"].as_str().unwrap_or_default();
            if !(1..=64).contains(&data.len()) {
                return Err(ApiFailure::bad("BUTTON_DATA_INVALID"));
            }
        }
    }
    Ok(if rows.is_empty() { Value::Null } else { markup })
}

/// Edits a text message of the bot. An edit without a keyboard removes the keyboard.
pub(super) fn edit_message(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let id = params.required_int("message_id")?;
    let (source, formatted) = content(params)?;
    let keyboard = keyboard(params)?;
    shared.change(|world| {
        let room = world.reachable(chat)?;
        match room.posts.get(&id) {
            None => return Err(ApiFailure::bad("message to edit not found")),
            Some(post) if !post.by_bot => {
                return Err(ApiFailure::bad("message can't be edited"));
            }
            Some(post) if post.file.is_some() => {
                return Err(ApiFailure::bad("there is no text in the message to edit"));
            }
            Some(_) => {}
        }
        count(world, shared, chat)?;
        let Some(post) = world.room(chat).posts.get_mut(&id) else {
            return Err(ApiFailure::bad("message to edit not found"));
        };
        if post.text == formatted.text
            && post.entities == formatted.entities
            && post.keyboard == keyboard
        {
            return Err(ApiFailure::bad(
                "message is not modified: specified new message content and reply markup are \
                 exactly the same as a current content and reply markup of the message",
            ));
        }
        post.text = formatted.text;
        post.entities = formatted.entities;
        post.source = source;
        post.keyboard = keyboard;
        post.edits += 1;
        let post = post.clone();
        Ok(world.message(chat, &post))
    })
}

/// Deletes a message of the bot.
pub(super) fn delete_message(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let id = params.required_int("message_id")?;
    shared.change(|world| {
        let room = world.reachable(chat)?;
        match room.posts.get(&id) {
            None => Err(ApiFailure::bad("message to delete not found")),
            Some(post) if !post.by_bot => Err(ApiFailure::bad("message can't be deleted")),
            Some(_) => {
                room.posts.remove(&id);
                Ok(json!(true))
            }
        }
    })
}

/// Shows a draft in a private chat.
pub(super) fn send_draft(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let id = params.required_int("draft_id")?;
    let topic = params.int("message_thread_id")?;
    if id == 0 {
        return Err(ApiFailure::bad("draft identifier must be non-zero"));
    }
    let formatted = formatted(params, params.text("text").unwrap_or_default())?;
    if units(&formatted.text) > MAX_TEXT {
        return Err(ApiFailure::bad("message is too long"));
    }
    shared.change(|world| {
        let room = world.reachable(chat)?;
        if chat < 0 {
            return Err(ApiFailure::bad(
                "drafts are available in private chats only",
            ));
        }
        check_topic(room, topic)?;
        if shared.options.drafts_count {
            count(world, shared, chat)?;
        }
        world.room(chat).draft = Some(Draft {
            id,
            text: formatted.text,
            can_stop: params.flag("can_stop"),
            topic,
            shown_at: shared.now(),
        });
        Ok(json!(true))
    })
}
