//! Bodies of messages and cards.

use serde_json::{Value, json};

use crate::markup::{Dialect, preview};
use crate::platform::{Button, LengthUnit, TextLimit};

/// Id of the element with the answer in streaming cards.
pub(super) const ANSWER: &str = "answer";
/// Id of the button that stops the answer in streaming cards.
pub(super) const STOP: &str = "stop";
/// Maximum length of one message. The body of a card has at most 30 KB.
pub(super) const TEXT_LIMIT: TextLimit = TextLimit {
    unit: LengthUnit::JsonBytes,
    max: 28_000,
};
/// Maximum size of the body of a request with a card, in bytes.
const MAX_CARD_BODY: usize = 30_000;

/// Content of a message with its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    /// Value of `msg_type`.
    pub(super) kind: &'static str,
    /// JSON text.
    pub(super) content: String,
}

impl Payload {
    /// `true` if the platform takes a body of this size.
    pub(super) fn fits(&self) -> bool {
        LengthUnit::JsonBytes.length(&self.content) <= MAX_CARD_BODY
    }
}

/// Returns a card in the old schema.
pub(super) fn card(markup: &str, buttons: &[Button], is_direct: bool) -> Payload {
    let mut elements = vec![json!({"tag": "markdown", "content": markup})];
    if !buttons.is_empty() {
        let actions: Vec<Value> = buttons
            .iter()
            .map(|button| action(button, is_direct))
            .collect();
        elements.push(json!({"tag": "action", "actions": actions}));
    }
    card_of(elements)
}

/// Returns a card in the old schema with text that is not interpreted.
pub(super) fn plain_card(plain: &str) -> Payload {
    card_of(vec![
        json!({"tag": "div", "text": {"tag": "plain_text", "content": plain}}),
    ])
}

fn card_of(elements: Vec<Value>) -> Payload {
    let card = json!({
        "config": {"wide_screen_mode": true, "update_multi": true},
        "elements": elements,
    });
    Payload {
        kind: "interactive",
        content: card.to_string(),
    }
}

/// Returns a button. A press in a direct chat names its kind, because the event of the press does
/// not.
fn action(button: &Button, is_direct: bool) -> Value {
    json!({
        "tag": "button",
        "text": {"tag": "plain_text", "content": button.label},
        "type": "default",
        "value": value_of(button, is_direct),
    })
}

/// Returns what the event of a press has as its value.
fn value_of(button: &Button, is_direct: bool) -> Value {
    let mut value = json!({"d": button.data});
    if is_direct {
        value["k"] = json!("p2p");
    }
    value
}

/// Returns a message without markup.
pub(super) fn text(plain: &str, buttons: &[Button]) -> Payload {
    let labels: Vec<&str> = buttons.iter().map(|button| button.label.as_str()).collect();
    let text = if labels.is_empty() {
        plain.to_owned()
    } else {
        format!("{plain}\n{}", labels.join(" / "))
    };
    Payload {
        kind: "text",
        // `<at user_id=..>` would notify people.
        content: json!({"text": text.replace("<at", "<\u{200b}at")}).to_string(),
    }
}

/// Returns the message that shows a card of CardKit.
pub(super) fn card_reference(id: &str) -> Payload {
    Payload {
        kind: "interactive",
        content: json!({"type": "card", "data": {"card_id": id}}).to_string(),
    }
}

/// Returns the body that creates a streaming card, with the button that stops the answer.
pub(super) fn streaming_card(stop: Option<&Button>, is_direct: bool) -> Value {
    let mut elements = vec![json!({"tag": "markdown", "content": "", "element_id": ANSWER})];
    elements.extend(stop.map(|button| {
        json!({
            "tag": "button",
            "element_id": STOP,
            "text": {"tag": "plain_text", "content": button.label},
            "type": "default",
            "behaviors": [{"type": "callback", "value": value_of(button, is_direct)}],
        })
    }));
    let data = json!({
        "schema": "2.0",
        "config": {
            "streaming_mode": true,
            "update_multi": true,
            "summary": {"content": "…"},
        },
        "body": {"elements": elements},
    });
    json!({"type": "card_json", "data": data.to_string()})
}

/// Returns the body that switches streaming mode.
pub(super) fn streaming_mode(is_on: bool, sequence: i64, uuid: &str) -> Value {
    let settings = json!({"config": {"streaming_mode": is_on}}).to_string();
    json!({"settings": settings, "sequence": sequence, "uuid": uuid})
}

/// Returns the body that replaces the text of a streaming card.
pub(super) fn streaming_text(markup: &str, sequence: i64, uuid: &str) -> Value {
    json!({"content": markup, "sequence": sequence, "uuid": uuid})
}

/// Returns the body that removes an element of a streaming card.
pub(super) fn removal(sequence: i64, uuid: &str) -> Value {
    json!({"sequence": sequence, "uuid": uuid})
}

/// Returns the text of a live update, if there is something to show.
pub(super) fn live_text(markdown: &str) -> Option<String> {
    let markup = preview(markdown, Dialect::FeishuCard, TEXT_LIMIT);
    (!markup.is_empty()).then_some(markup)
}

/// Returns the type of an upload for a file name. Videos and sounds are sent as plain files.
pub(super) fn file_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, end)| end.to_lowercase());
    match extension.as_deref() {
        Some("pdf") => "pdf",
        Some("doc" | "docx") => "doc",
        Some("xls" | "xlsx") => "xls",
        Some("ppt" | "pptx") => "ppt",
        _ => "stream",
    }
}

/// `true` if a file is sent as an image.
pub(super) fn is_image(name: &str, media_type: &str, size: usize) -> bool {
    const MAX_IMAGE: usize = 10 * 1024 * 1024;
    let extension = name.rsplit_once('.').map(|(_, end)| end.to_lowercase());
    let is_known = matches!(
        extension.as_deref(),
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "tif" | "tiff")
    );
    size <= MAX_IMAGE && is_known && media_type.starts_with("image/") && !media_type.contains("svg")
}
