//! Bodies of requests.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::platform::Target;

/// Title of messages without text.
const TITLE: &str = "DeerFlow";
/// Maximum number of characters of a title, which notifications show.
const MAX_TITLE: usize = 40;

/// Message by its key and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    key: &'static str,
    parameters: String,
}

impl Sample {
    /// Creates a Markdown message, whose title is the beginning of its plain text.
    pub(super) fn markdown(markup: &str, plain: &str) -> Self {
        let line = plain.lines().map(str::trim).find(|line| !line.is_empty());
        let title: String = line.unwrap_or(TITLE).chars().take(MAX_TITLE).collect();
        Self {
            key: "sampleMarkdown",
            parameters: json!({"title": title, "text": markup}).to_string(),
        }
    }

    /// Creates a message with an uploaded picture.
    pub(super) fn picture(media: &str) -> Self {
        Self {
            key: "sampleImageMsg",
            parameters: json!({"photoURL": media}).to_string(),
        }
    }

    /// Creates a message with an uploaded file.
    pub(super) fn file(media: &str, name: &str) -> Self {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let kind = if extension.is_empty() {
            "txt"
        } else {
            extension
        };
        Self {
            key: "sampleFile",
            parameters: json!({
                "mediaId": media, "fileName": name, "fileType": kind.to_ascii_lowercase(),
            })
            .to_string(),
        }
    }
}

/// Returns the path and the body with which a message is sent.
pub(super) fn send(target: &Target, robot: &str, sample: &Sample) -> (&'static str, Value) {
    let mut body = json!({
        "robotCode": robot, "msgKey": sample.key, "msgParam": sample.parameters,
    });
    if target.is_direct() {
        body["userIds"] = json!([target.chat.id]);
        ("v1.0/robot/oToMessages/batchSend", body)
    } else {
        body["openConversationId"] = json!(target.chat.id);
        ("v1.0/robot/groupMessages/send", body)
    }
}

/// Returns the id of the card of an answer in progress.
pub(super) fn card_id(key: Uuid) -> String {
    format!("deerflow-{}", key.simple())
}

/// Builds the body that creates and shows a card.
pub(super) fn create_card(target: &Target, robot: &str, template: &str, card: &str) -> Value {
    let mut body = json!({
        "cardTemplateId": template, "outTrackId": card,
        "cardData": {"cardParamMap": {"content": ""}}, "callbackType": "STREAM",
        "imGroupOpenSpaceModel": {"supportForward": true},
        "imRobotOpenSpaceModel": {"supportForward": true},
    });
    if target.is_direct() {
        body["openSpaceId"] = json!(format!("dtv1.card//IM_ROBOT.{}", target.chat.id));
        body["imRobotOpenDeliverModel"] = json!({"spaceType": "IM_ROBOT"});
    } else {
        body["openSpaceId"] = json!(format!("dtv1.card//IM_GROUP.{}", target.chat.id));
        body["imGroupOpenDeliverModel"] = json!({"robotCode": robot});
    }
    body
}

/// Builds the body that replaces the text of a card. A repeated `guid` has no further effect.
pub(super) fn stream_card(card: &str, guid: Uuid, text: &str, is_final: bool) -> Value {
    json!({
        "outTrackId": card, "guid": guid.to_string(), "key": "content", "content": text,
        "isFull": true, "isFinalize": is_final, "isError": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(sample: &Sample) -> Value {
        serde_json::from_str(&sample.parameters).unwrap()
    }

    #[test]
    fn title_is_the_beginning_of_the_text() {
        let title = |plain: &str| parameters(&Sample::markdown("m", plain))["title"].clone();
        assert_eq!(title("\n  Hello\nworld"), "Hello");
        assert_eq!(title(" \n"), "DeerFlow");
        assert_eq!(title(&"ä".repeat(99)), "ä".repeat(40));
    }

    #[test]
    fn file_type_is_the_extension() {
        let kind = |name: &str| parameters(&Sample::file("@m", name))["fileType"].clone();
        assert_eq!(kind("a.tar.GZ"), "gz");
        assert_eq!(kind("README"), "txt");
        assert_eq!(kind("a."), "txt");
    }
}
