//! CardKit: streaming cards.

use std::time::Instant;

use serde_json::{Value, json};

use super::messages::{check_card, only, text};
use super::refusal::Refusal;
use super::world::{FeishuCard, FeishuWorld};

/// Maximum size of a card's JSON and of an element's text.
const MAX_CARD: usize = 30 * 1024;

/// Creates a card.
pub(super) fn create(
    world: &mut FeishuWorld,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let fields = body
        .as_object()
        .ok_or_else(|| Refusal::fields("the body is not an object"))?;
    only(fields, &["type", "data"])?;
    if text(fields, "type")? != "card_json" {
        return Err(Refusal::fields("type is not card_json"));
    }
    let data = text(fields, "data")?;
    if data.len() > MAX_CARD {
        return Err(Refusal::new(200_860, "the card is too large"));
    }
    let data: Value =
        serde_json::from_str(data).map_err(|_| Refusal::new(200_610, "data is not JSON"))?;
    if data["schema"] != "2.0" {
        return Err(Refusal::new(200_220, "the schema is not 2.0"));
    }
    check_card(&data)?;
    let card_id = format!("7355{:06}", world.number());
    let card = FeishuCard {
        card_id: card_id.clone(),
        streaming: data["config"]["streaming_mode"] == Value::Bool(true),
        data,
        sequence: 0,
        message_id: None,
        updates: Vec::new(),
        streaming_since: now,
    };
    world.cards.insert(card_id.clone(), card);
    Ok(json!({"card_id": card_id}))
}

/// Returns a card after the checks of limit, fields and sequence.
fn card<'a>(
    world: &'a mut FeishuWorld,
    id: &str,
    body: &Value,
    allowed: &[&str],
    now: Instant,
) -> Result<&'a mut FeishuCard, Refusal> {
    world.limits.card(id, now)?;
    let fields = body
        .as_object()
        .ok_or_else(|| Refusal::fields("the body is not an object"))?;
    only(fields, allowed)?;
    if fields
        .get("uuid")
        .and_then(Value::as_str)
        .is_some_and(|uuid| uuid.len() > 64)
    {
        return Err(Refusal::fields("uuid is longer than 64 characters"));
    }
    let lifetime = world.options.streaming;
    let card = world
        .cards
        .get_mut(id)
        .ok_or_else(|| Refusal::new(200_740, "the card does not exist"))?;
    if now.duration_since(card.streaming_since) >= lifetime {
        card.streaming = false;
    }
    let sequence = fields
        .get("sequence")
        .and_then(Value::as_i64)
        .filter(|sequence| (1..=i64::from(i32::MAX)).contains(sequence))
        .ok_or_else(|| Refusal::fields("sequence is missing or not positive"))?;
    if sequence <= card.sequence {
        return Err(Refusal::new(300_317, "the sequence did not grow"));
    }
    card.sequence = sequence;
    Ok(card)
}

/// Replaces the text of an element.
pub(super) fn content(
    world: &mut FeishuWorld,
    id: &str,
    element: &str,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let refused = world.refused_content.clone();
    let card = card(world, id, body, &["uuid", "content", "sequence"], now)?;
    let content = body["content"]
        .as_str()
        .ok_or_else(|| Refusal::fields("content is missing"))?;
    if content.len() > MAX_CARD {
        return Err(Refusal::new(200_860, "the card is too large"));
    }
    if refused.iter().any(|(text, _)| content.contains(text)) {
        return Err(Refusal::new(230_099, "the content is refused"));
    }
    if !card.streaming {
        return Err(Refusal::new(300_309, "streaming mode is closed"));
    }
    let found = card.data["body"]["elements"]
        .as_array_mut()
        .and_then(|elements| {
            elements
                .iter_mut()
                .find(|found| found["element_id"] == *element)
        })
        .ok_or_else(|| Refusal::new(300_313, "the element does not exist"))?;
    found["content"] = json!(content);
    card.updates.push(content.to_owned());
    Ok(json!({}))
}

/// Removes an element.
pub(super) fn remove(
    world: &mut FeishuWorld,
    id: &str,
    element: &str,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let card = card(world, id, body, &["uuid", "sequence"], now)?;
    let elements = card.data["body"]["elements"].as_array_mut();
    let at = elements.as_ref().and_then(|elements| {
        elements
            .iter()
            .position(|found| found["element_id"] == *element)
    });
    let (Some(elements), Some(at)) = (elements, at) else {
        return Err(Refusal::new(300_313, "the element does not exist"));
    };
    elements.remove(at);
    Ok(json!({}))
}

/// Changes the settings of a card.
pub(super) fn settings(
    world: &mut FeishuWorld,
    id: &str,
    body: &Value,
    now: Instant,
) -> Result<Value, Refusal> {
    let card = card(world, id, body, &["uuid", "settings", "sequence"], now)?;
    let settings: Value = body["settings"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| Refusal::fields("settings is not JSON"))?;
    if let Some(streaming) = settings["config"]["streaming_mode"].as_bool() {
        card.streaming = streaming;
        card.streaming_since = now;
    }
    if let Some(summary) = settings["config"].get("summary") {
        card.data["config"]["summary"] = summary.clone();
    }
    Ok(json!({}))
}
