//! Messages of the bot: sending, editing, reactions and lists.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::world::{FeishuMessage, FeishuWorld, elements_of, now_ms};

/// Maximum size of a text message's content.
const MAX_TEXT: usize = 150 * 1024;
/// Maximum size of a card's content.
const MAX_CARD: usize = 30 * 1024;
/// Maximum length of an idempotency key.
const MAX_UUID: usize = 50;
/// Time for which a message can be edited, in milliseconds.
const EDITABLE_MS: i64 = 14 * 24 * 3600 * 1000;

/// Destination of a message.
pub(super) enum Place<'a> {
    /// Reply to a message.
    Reply(&'a str),
    /// New message, with the kind of its receiver.
    Chat(&'a str),
}

/// Sends a message.
pub(super) fn send(
    world: &mut FeishuWorld,
    place: &Place<'_>,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let fields = object(body)?;
    let allowed: &[&str] = match place {
        Place::Reply(_) => &["content", "msg_type", "reply_in_thread", "uuid"],
        Place::Chat(_) => &["receive_id", "content", "msg_type", "uuid"],
    };
    only(fields, allowed)?;
    let kind = text(fields, "msg_type")?;
    let content = text(fields, "content")?;
    let uuid = fields.get("uuid").and_then(Value::as_str);
    if uuid.is_some_and(|uuid| uuid.len() > MAX_UUID) {
        return Err(Refusal::fields("uuid is longer than 50 characters"));
    }
    let (chat_id, parent) = match place {
        Place::Reply(id) => {
            let parent = reachable(world, id)?.clone();
            (parent.chat_id.clone(), Some(parent))
        }
        Place::Chat("chat_id") => (text(fields, "receive_id")?.to_owned(), None),
        Place::Chat(other) => return Err(Refusal::fields(format!("receive_id_type is {other}"))),
    };
    if !world.chats.contains_key(&chat_id) || world.left.contains(&chat_id) {
        return Err(Refusal::new(230_002, "the bot is not in the chat"));
    }
    world.limits.chat(&chat_id, now)?;
    if let Some(message) = world.repeated(uuid, now) {
        return Ok(json!({"message_id": message.message_id}));
    }
    let card = check_content(world, kind, content)?;
    let number = world.number();
    let message_id = format!("om_bot_{number}");
    let in_thread = fields.get("reply_in_thread") == Some(&Value::Bool(true));
    let thread_id = match &parent {
        Some(parent) if parent.thread_id.is_some() => parent.thread_id.clone(),
        Some(parent) if in_thread => Some(format!("omt_{}", parent.message_id)),
        _ => None,
    };
    if let Some(card) = card.and_then(|id| world.cards.get_mut(&id)) {
        card.message_id = Some(message_id.clone());
    }
    if let Some(uuid) = uuid {
        world
            .uuids
            .insert(uuid.to_owned(), (message_id.clone(), now));
    }
    world.insert(FeishuMessage {
        message_id: message_id.clone(),
        chat_id: chat_id.clone(),
        sender: world.options.app_id.clone(),
        by_bot: true,
        msg_type: kind.to_owned(),
        content: content.to_owned(),
        root_id: parent.as_ref().map(|parent| {
            let root = parent.root_id.as_ref();
            root.unwrap_or(&parent.message_id).clone()
        }),
        parent_id: parent.map(|parent| parent.message_id),
        thread_id: thread_id.clone(),
        create_time: now_ms(),
        mentions: Vec::new(),
        reactions: Vec::new(),
        edits: 0,
        uuid: uuid.map(ToOwned::to_owned),
        gone: None,
    });
    Ok(
        json!({"message_id": message_id, "chat_id": chat_id, "thread_id": thread_id, "msg_type": kind}),
    )
}

/// Replaces the card of a message.
pub(super) fn patch(
    world: &mut FeishuWorld,
    id: &str,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let fields = object(body)?;
    only(fields, &["content"])?;
    let content = text(fields, "content")?;
    let message = reachable(world, id)?;
    if !message.by_bot {
        return Err(Refusal::new(
            230_017,
            "the message belongs to another sender",
        ));
    }
    if message.msg_type != "interactive" {
        return Err(Refusal::new(230_001, "only cards can be updated"));
    }
    if now_ms() - message.create_time > EDITABLE_MS {
        return Err(Refusal::new(230_031, "the message is older than 14 days"));
    }
    world.limits.message(id, now)?;
    check_content(world, "interactive", content)?;
    let effective = world.options.effective_edits;
    if let Some(message) = world.messages.get_mut(id) {
        message.edits += 1;
        // Users report that later edits are accepted and not shown.
        if message.edits <= effective {
            content.clone_into(&mut message.content);
        }
    }
    Ok(json!({}))
}

/// Adds a reaction.
pub(super) fn react(world: &mut FeishuWorld, id: &str, body: &Value) -> Result<Value, Refusal> {
    let fields = object(body)?;
    only(fields, &["reaction_type"])?;
    let emoji = body["reaction_type"]["emoji_type"]
        .as_str()
        .ok_or_else(|| Refusal::fields("emoji_type is missing"))?
        .to_owned();
    if !["OK", "DONE", "THUMBSUP", "CrossMark"].contains(&emoji.as_str()) {
        return Err(Refusal::new(231_001, "the emoji type does not exist"));
    }
    reachable(world, id)?;
    let number = world.number();
    if let Some(message) = world.messages.get_mut(id) {
        message.reactions.push(emoji.clone());
    }
    Ok(json!({"reaction_id": format!("r{number}"), "reaction_type": {"emoji_type": emoji}}))
}

/// Lists the messages of a chat from a time on.
pub(super) fn list(world: &FeishuWorld, query: &Map<String, Value>) -> Result<Value, Refusal> {
    let chat = text(query, "container_id")?;
    if query.get("container_id_type") != Some(&json!("chat")) {
        return Err(Refusal::fields("container_id_type is not chat"));
    }
    if !world.chats.contains_key(chat) || world.left.contains(chat) {
        return Err(Refusal::new(230_002, "the bot is not in the chat"));
    }
    let number = |key: &str, default: i64| match query.get(key).and_then(Value::as_str) {
        Some(text) => text
            .parse::<i64>()
            .map_err(|_| Refusal::fields(format!("{key} is not a number"))),
        None => Ok(default),
    };
    let start = number("start_time", 0)?;
    let size = number("page_size", 20)?;
    if !(1..=50).contains(&size) {
        return Err(Refusal::fields("page_size is not within 1 and 50"));
    }
    let offset = number("page_token", 0)? as usize;
    let found: Vec<&FeishuMessage> = world
        .order
        .iter()
        .filter_map(|id| world.messages.get(id))
        .filter(|message| message.chat_id == chat && message.create_time / 1000 >= start)
        .collect();
    let page: Vec<Value> = found
        .iter()
        .skip(offset)
        .take(size as usize)
        .map(|message| item(message))
        .collect();
    let end = offset + page.len();
    let has_more = end < found.len();
    Ok(json!({"has_more": has_more, "page_token": end.to_string(), "items": page}))
}

fn item(message: &FeishuMessage) -> Value {
    let kind = if message.by_bot { "app" } else { "user" };
    json!({
        "message_id": message.message_id, "root_id": message.root_id, "parent_id": message.parent_id,
        "thread_id": message.thread_id, "msg_type": message.msg_type,
        "create_time": message.create_time.to_string(), "chat_id": message.chat_id,
        "sender": {"id": message.sender, "id_type": "open_id", "sender_type": kind, "tenant_key": "t1"},
        "body": {"content": message.content},
        "mentions": message.mentions.iter().map(|mention| json!({
            "key": mention["key"], "id": mention["id"]["open_id"], "id_type": "open_id",
            "name": mention["name"],
        })).collect::<Vec<_>>(),
    })
}

/// Returns a message that exists in a chat of the bot.
fn reachable<'a>(world: &'a FeishuWorld, id: &str) -> Result<&'a FeishuMessage, Refusal> {
    let message = world
        .messages
        .get(id)
        .ok_or_else(|| Refusal::new(230_011, "the message does not exist"))?;
    if let Some(code) = message.gone {
        return Err(Refusal::new(code, "the message is gone"));
    }
    if world.left.contains(&message.chat_id) {
        return Err(Refusal::new(230_002, "the bot is not in the chat"));
    }
    Ok(message)
}

/// Checks the content of a message and returns the id of the card that it shows.
fn check_content(
    world: &FeishuWorld,
    kind: &str,
    content: &str,
) -> Result<Option<String>, Refusal> {
    let max = if kind == "text" { MAX_TEXT } else { MAX_CARD };
    if content.len() > max {
        return Err(Refusal::new(230_025, "the content is too long"));
    }
    let value: Value = serde_json::from_str(content)
        .map_err(|_| Refusal::new(230_001, "the content is not JSON"))?;
    if kind != "text"
        && let Some((_, code)) = world
            .refused_content
            .iter()
            .find(|(text, _)| content.contains(text))
    {
        return Err(Refusal::new(*code, "the content is refused"));
    }
    let known = |key: &str| {
        world
            .files
            .contains_key(value[key].as_str().unwrap_or_default())
    };
    let is_valid = match kind {
        "text" => value["text"].as_str().is_some_and(|text| !text.is_empty()),
        "image" => known("image_key"),
        "file" | "audio" | "media" => known("file_key"),
        "interactive" if value["type"] == "card" => {
            let id = value["data"]["card_id"].as_str().unwrap_or_default();
            let card = world.cards.get(id);
            let free = card.is_some_and(|card| card.message_id.is_none());
            return free.then(|| Some(id.to_owned())).ok_or_else(|| {
                Refusal::new(230_099, "the card does not exist or was sent before")
            });
        }
        "interactive" => return check_card(&value).map(|()| None),
        _ => return Err(Refusal::fields(format!("msg_type is {kind}"))),
    };
    is_valid
        .then_some(None)
        .ok_or_else(|| Refusal::new(230_001, format!("the content is no {kind}")))
}

/// Checks the JSON of a card in either schema.
pub(super) fn check_card(card: &Value) -> Result<(), Refusal> {
    let invalid = |text: &str| Refusal::new(230_099, format!("failed to create the card: {text}"));
    if card["config"]["update_multi"] != Value::Bool(true) {
        return Err(invalid("update_multi is not set"));
    }
    let is_new = card["schema"] == "2.0";
    if elements_of(card).is_empty() {
        return Err(invalid("elements are missing"));
    }
    for element in elements_of(card) {
        let is_valid = match element["tag"].as_str().unwrap_or_default() {
            "markdown" => element["content"].is_string(),
            "div" => element["text"]["content"].is_string(),
            "hr" => true,
            "action" if !is_new => element["actions"]
                .as_array()
                .is_some_and(|actions| !actions.is_empty() && actions.iter().all(is_button)),
            "button" if is_new => element["text"]["content"].is_string(),
            _ => false,
        };
        if !is_valid {
            return Err(invalid(&format!("invalid element {}", element["tag"])));
        }
    }
    Ok(())
}

fn is_button(action: &Value) -> bool {
    action["tag"] == "button"
        && action["text"]["tag"] == "plain_text"
        && action["text"]["content"].is_string()
        && action["value"].is_object()
}

fn object(body: &Value) -> Result<&Map<String, Value>, Refusal> {
    body.as_object()
        .ok_or_else(|| Refusal::fields("the body is not an object"))
}

/// Refuses unknown fields.
pub(super) fn only(fields: &Map<String, Value>, allowed: &[&str]) -> Result<(), Refusal> {
    match fields.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(Refusal::fields(format!("unknown field {key}"))),
        None => Ok(()),
    }
}

/// Returns a required text.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<&'a str, Refusal> {
    fields
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| Refusal::fields(format!("{key} is missing")))
}
