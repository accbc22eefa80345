//! Blocks of messages with buttons.

use serde_json::{Value, json};

use crate::platform::Button;

/// Maximum length of a section in characters.
const MAX_SECTION: usize = 2_900;
/// Maximum length of a label in characters.
const MAX_LABEL: usize = 75;
/// Maximum number of buttons in a row.
const MAX_ROW: usize = 25;

/// Returns the blocks of a text in mrkdwn with buttons.
pub(super) fn with_buttons(markup: &str, buttons: &[Button]) -> Value {
    let sections = sections(markup)
        .into_iter()
        .map(|text| json!({"type": "section", "text": {"type": "mrkdwn", "text": text}}));
    let rows = buttons.chunks(MAX_ROW).enumerate().map(|(row, buttons)| {
        let elements: Vec<Value> = buttons
            .iter()
            .enumerate()
            .map(|(index, button)| {
                json!({
                    "type": "button",
                    "action_id": format!("button_{row}_{index}"),
                    "text": {"type": "plain_text", "text": label(&button.label)},
                    "value": button.data,
                })
            })
            .collect();
        json!({"type": "actions", "elements": elements})
    });
    sections.chain(rows).collect()
}

/// Returns a text that offers the buttons as a list, for a place that refuses blocks.
pub(super) fn as_text(markup: &str, buttons: &[Button]) -> String {
    let mut text = markup.to_owned();
    for button in buttons {
        text.push_str("\n• ");
        text.push_str(&super::text::escape(&button.label));
    }
    text
}

fn label(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "…".to_owned();
    }
    if text.chars().count() <= MAX_LABEL {
        return text.to_owned();
    }
    text.chars().take(MAX_LABEL - 1).chain(['…']).collect()
}

/// Splits a text at lines, or within a line before an entity.
fn sections(text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let mut rest = text.trim();
    while let Some((max, _)) = rest.char_indices().nth(MAX_SECTION) {
        let fitting = &rest[..max];
        let at = match fitting.rfind('\n').or_else(|| fitting.rfind(' ')) {
            Some(at) if at > 0 => at,
            _ => fitting
                .rfind('&')
                .filter(|at| *at > 0 && max - at < 5)
                .unwrap_or(max),
        };
        sections.push(rest[..at].trim_end());
        rest = rest[at..].trim_start_matches(['\n', ' ']);
    }
    if !rest.is_empty() {
        sections.push(rest);
    }
    sections.retain(|section| !section.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn button(label: &str) -> Button {
        Button {
            label: label.to_owned(),
            data: "d".to_owned(),
        }
    }

    #[test]
    fn buttons_follow_the_text_in_rows() {
        let buttons: Vec<Button> = (0..26).map(|index| button(&index.to_string())).collect();
        let blocks = with_buttons("*Really?*", &buttons);
        assert_eq!(blocks[0]["text"]["text"], "*Really?*");
        assert_eq!(blocks[1]["elements"].as_array().unwrap().len(), 25);
        assert_eq!(blocks[2]["elements"][0]["text"]["text"], "25");
        assert_eq!(blocks[2]["elements"][0]["value"], "d");
    }

    #[test]
    fn long_labels_and_texts_are_within_their_limits() {
        assert_eq!(label(&"é".repeat(80)).chars().count(), MAX_LABEL);
        let text = format!(
            "{}&amp;{}",
            "a".repeat(MAX_SECTION - 2),
            "b".repeat(MAX_SECTION)
        );
        let split = sections(&text);
        assert!(
            split
                .iter()
                .all(|section| section.chars().count() <= MAX_SECTION)
        );
        assert_eq!(split.concat(), text);
        assert!(split[1].starts_with("&amp;"));
        assert_eq!(sections("one\ntwo"), ["one\ntwo"]);
    }
}
