//! Bodies of requests.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::platform::Button;

/// Maximum number of buttons in a row.
const ROW: usize = 5;
/// Maximum number of buttons of a message.
const MAX_BUTTONS: usize = 25;
/// Maximum number of characters of a button's label.
const MAX_LABEL: usize = 80;
/// Maximum number of characters of a thread's name.
const MAX_NAME: usize = 100;

/// Returns the key with which Discord recognizes a repeated message, of at most 25 characters.
pub(super) fn nonce(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

/// Message that is created.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewMessage<'a> {
    /// Text.
    pub(super) text: &'a str,
    /// Buttons.
    pub(super) buttons: &'a [Button],
    /// Id from which the nonce is derived.
    pub(super) key: Uuid,
    /// Message that is answered.
    pub(super) reply_to: Option<&'a str>,
}

/// Builds the body of a new message, which notifies no mentioned person.
pub(super) fn create(message: NewMessage<'_>) -> Value {
    let mut body = common(message.text);
    body.insert("nonce".to_owned(), json!(nonce(message.key)));
    body.insert("enforce_nonce".to_owned(), json!(true));
    if !message.buttons.is_empty() {
        body.insert("components".to_owned(), components(message.buttons));
    }
    if let Some(target) = message.reply_to {
        let reference = json!({"message_id": target, "fail_if_not_exists": false});
        body.insert("message_reference".to_owned(), reference);
    }
    Value::Object(body)
}

/// Builds the body of an edit. Former buttons are removed.
pub(super) fn edit(text: &str, buttons: &[Button]) -> Value {
    let mut body = common(text);
    body.insert("components".to_owned(), components(buttons));
    Value::Object(body)
}

/// Builds the answer to a press: a short text that only the person sees, or nothing visible.
pub(super) fn press_answer(text: &str) -> Value {
    if text.is_empty() {
        return json!({"type": 6});
    }
    let mut data = common(text);
    data.insert("flags".to_owned(), json!(64));
    json!({"type": 4, "data": data})
}

/// Returns the name of the thread of a message.
pub(super) fn thread_name(person: &str, message: &str) -> String {
    let person: String = person.split_whitespace().collect::<Vec<_>>().join("-");
    let rest = format!("deerflow--{message}").chars().count();
    let person: String = person.chars().take(MAX_NAME.saturating_sub(rest)).collect();
    format!("deerflow-{person}-{message}")
}

fn common(text: &str) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("content".to_owned(), json!(text));
    body.insert("allowed_mentions".to_owned(), json!({"parse": []}));
    body
}

fn components(buttons: &[Button]) -> Value {
    let shown = &buttons[..buttons.len().min(MAX_BUTTONS)];
    let rows: Vec<Value> = shown
        .chunks(ROW)
        .map(|row| {
            let row: Vec<Value> = row.iter().map(button).collect();
            json!({"type": 1, "components": row})
        })
        .collect();
    json!(rows)
}

fn button(button: &Button) -> Value {
    let label: String = button.label.chars().take(MAX_LABEL).collect();
    json!({"type": 2, "style": 2, "label": label, "custom_id": button.data})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonce_is_short_and_repeats_for_the_same_id() {
        let id = Uuid::from_u128(7);
        assert_eq!(nonce(id), nonce(id));
        assert_ne!(nonce(id), nonce(Uuid::from_u128(8)));
        assert!(nonce(Uuid::from_u128(u128::MAX)).len() <= 25);
    }

    #[test]
    fn buttons_are_arranged_in_rows_of_five() {
        let buttons: Vec<Button> = (0..30)
            .map(|number| Button {
                label: "x".repeat(100),
                data: format!("b{number}"),
            })
            .collect();
        let rows = components(&buttons);
        assert_eq!(rows.as_array().unwrap().len(), 5);
        assert_eq!(rows[4]["components"][4]["custom_id"], "b24");
        let label = rows[0]["components"][0]["label"].as_str().unwrap();
        assert_eq!(label.chars().count(), 80);
        assert_eq!(edit("done", &[])["components"], json!([]));
    }

    #[test]
    fn thread_name_keeps_the_message_id_of_long_names() {
        let name = thread_name(&"ä b".repeat(80), "1400000000000000001");
        assert_eq!(name.chars().count(), 100);
        assert!(name.ends_with("-1400000000000000001"), "{name}");
    }
}
