//! Cards whose text is streamed.

use serde_json::{Value, json};

use super::answer::Answer;
use super::shared::{CLIENT_ID, Card, DingTalkShared, TEMPLATE};

/// Creates a card and shows it. A repetition changes nothing.
pub(super) fn create(shared: &DingTalkShared, body: &Value) -> Answer {
    if body["cardTemplateId"] != TEMPLATE {
        return Answer::refused(400, "param.cardTemplateNotExist", "unknown template");
    }
    let Some(id) = body["outTrackId"].as_str().filter(|id| !id.is_empty()) else {
        return Answer::invalid("outTrackId");
    };
    if !body["cardData"]["cardParamMap"].is_object() {
        return Answer::invalid("cardData");
    }
    let space = body["openSpaceId"].as_str().unwrap_or_default();
    let is_deliverable = if space.starts_with("dtv1.card//IM_GROUP.") {
        body["imGroupOpenDeliverModel"]["robotCode"] == CLIENT_ID
            && body["imGroupOpenSpaceModel"].is_object()
    } else if space.starts_with("dtv1.card//IM_ROBOT.") {
        body["imRobotOpenDeliverModel"]["spaceType"] == "IM_ROBOT"
            && body["imRobotOpenSpaceModel"].is_object()
    } else {
        false
    };
    if !is_deliverable {
        return Answer::invalid("openSpaceId");
    }
    shared
        .cards
        .lock()
        .entry(id.to_owned())
        .or_insert_with(|| Card {
            space: space.to_owned(),
            ..Card::default()
        });
    Answer::ok(json!({
        "success": true,
        "result": {
            "outTrackId": id,
            "deliverResults": [{"success": true, "errorMsg": "", "carrierId": "c"}],
        },
    }))
}

/// Replaces or extends the text of a card.
pub(super) fn stream(shared: &DingTalkShared, body: &Value) -> Answer {
    let id = body["outTrackId"].as_str().unwrap_or_default();
    let mut cards = shared.cards.lock();
    let Some(card) = cards.get_mut(id) else {
        return Answer::refused(400, "param.outTrackIdNotExist", "unknown card");
    };
    let flags = ["isFull", "isFinalize", "isError"];
    let (Some(guid), Some(content)) = (body["guid"].as_str(), body["content"].as_str()) else {
        return Answer::invalid("guid");
    };
    if body["key"] != "content" || !flags.iter().all(|flag| body[flag].is_boolean()) {
        return Answer::invalid("key");
    }
    if !card.guids.insert(guid.to_owned()) {
        return Answer::ok(json!({"success": true, "result": true}));
    }
    if card.is_final {
        return Answer::refused(400, "card.streamingFinished", "the card is complete");
    }
    if body["isFull"] == true {
        content.clone_into(&mut card.content);
    } else {
        card.content.push_str(content);
    }
    card.is_final = body["isFinalize"] == true;
    Answer::ok(json!({"success": true, "result": true}))
}
