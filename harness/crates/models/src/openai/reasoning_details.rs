//! Joins the fragments of a streamed answer's `reasoning_details`, because the provider accepts
//! only complete details back.

use serde_json::{Map, Value};

/// Keys whose values arrive in fragments.
const FRAGMENTED_KEYS: &[&str] = &["text", "summary", "data"];
/// Number of last details that are searched for the one a fragment continues.
const SEARCH_WINDOW: usize = 16;

/// Appends `fragment` to the detail that it continues, or adds it as a new one.
pub(super) fn add_fragment(details: &mut Vec<Value>, fragment: &Value) {
    let mut recent = details
        .iter_mut()
        .rev()
        .take(SEARCH_WINDOW)
        .filter_map(Value::as_object_mut);
    if let Some(more) = fragment.as_object()
        && let Some(existing) = recent.find(|existing| continues(existing, more))
    {
        return extend(existing, more);
    }
    details.push(fragment.clone());
}

/// Reports whether `fragment` continues the detail: same type, same index, and no other id.
fn continues(existing: &Map<String, Value>, fragment: &Map<String, Value>) -> bool {
    let both = |key| {
        existing
            .get(key)
            .zip(fragment.get(key))
            .filter(|(old, new)| !old.is_null() && !new.is_null())
    };
    let same = |key| both(key).is_some_and(|(old, new)| old == new);
    same("type") && same("index") && both("id").is_none_or(|(old, new)| old == new)
}

fn extend(existing: &mut Map<String, Value>, fragment: &Map<String, Value>) {
    for (key, value) in fragment.iter().filter(|(_, value)| !value.is_null()) {
        match (existing.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more))
                if FRAGMENTED_KEYS.contains(&key.as_str()) =>
            {
                text.push_str(more)
            }
            (Some(old), _) => old.clone_from(value),
            (None, _) => drop(existing.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fragments_are_joined_into_details() {
        let mut details = Vec::new();
        for fragment in [
            json!({"type": "reasoning.text", "index": 0, "text": "so", "signature": null}),
            json!({"type": "reasoning.text", "index": 0, "text": " be it"}),
            json!({"type": "reasoning.text", "index": 0, "signature": "s", "format": "f"}),
            json!({"type": "reasoning.text", "index": 1, "text": "next"}),
            json!({"type": "reasoning.encrypted", "index": 1, "id": "a", "data": "x"}),
            json!({"type": "reasoning.encrypted", "index": 1, "id": "b", "data": "y"}),
            json!({"type": "reasoning.encrypted", "data": "no index"}),
            json!({"type": "reasoning.encrypted", "data": "no index"}),
            json!(7),
        ] {
            add_fragment(&mut details, &fragment);
        }
        assert_eq!(
            json!(details),
            json!([
                {"type": "reasoning.text", "index": 0, "text": "so be it", "signature": "s", "format": "f"},
                {"type": "reasoning.text", "index": 1, "text": "next"},
                {"type": "reasoning.encrypted", "index": 1, "id": "a", "data": "x"},
                {"type": "reasoning.encrypted", "index": 1, "id": "b", "data": "y"},
                {"type": "reasoning.encrypted", "data": "no index"},
                {"type": "reasoning.encrypted", "data": "no index"},
                7,
            ])
        );
    }
}
