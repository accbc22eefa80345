//! Options of a question and of a field, in the forms that models write.

use serde_json::Value;

/// Returns the options in any form that models write: a list, the JSON text of a list, one text, or
/// an object whose leaves are the options.
pub(super) fn options_of(value: Option<&Value>) -> Vec<String> {
    let mut leaves = Vec::new();
    match value {
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(list @ (Value::Array(_) | Value::Object(_))) => collect_leaves(&list, &mut leaves),
            _ => leaves.push(text.clone()),
        },
        Some(value) => collect_leaves(value, &mut leaves),
        None => {}
    }
    let mut options: Vec<String> = Vec::new();
    for leaf in leaves {
        let option = without_tags(&leaf).trim().to_owned();
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    options
}

fn collect_leaves(value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) => leaves.push(text.clone()),
        Value::Bool(_) | Value::Number(_) => leaves.push(value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(item, leaves)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| collect_leaves(field, leaves)),
    }
}

/// Removes text that has the form of an XML tag; a lone `<` stays.
fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let inside = &rest[open + 1..];
        if !inside.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/') {
            plain.push_str(&rest[..=open]);
            rest = inside;
            continue;
        }
        // If no `>` follows, no later tag is closed either.
        let Some(close) = inside.find('>') else { break };
        plain.push_str(&rest[..open]);
        rest = &inside[close + 1..];
    }
    plain + rest
}
