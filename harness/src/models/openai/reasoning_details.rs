//! Puts the fragments of a streamed answer's `reasoning_details` together: the provider takes back whole details only.

use serde_json::{Map, Value};

/// What of a detail comes in pieces.
const IN_PIECES: &[&str] = &["text", "summary", "data"];
/// A fragment's detail is among the last so many.
const NEAR: usize = 16;

/// Adds `fragment` to the detail that it continues, or as a new one.
pub(super) fn add_fragment(details: &mut Vec<Value>, fragment: &Value) {
    let mut near = details
        .iter_mut()
        .rev()
        .take(NEAR)
        .filter_map(Value::as_object_mut);
    if let Some(more) = fragment.as_object()
        && let Some(begun) = near.find(|begun| continues(begun, more))
    {
        return extend(begun, more);
    }
    details.push(fragment.clone());
}

/// Whether `fragment` says more of the same detail: one type, one index, and no other id.
fn continues(begun: &Map<String, Value>, fragment: &Map<String, Value>) -> bool {
    let both = |key| {
        begun
            .get(key)
            .zip(fragment.get(key))
            .filter(|(known, new)| !known.is_null() && !new.is_null())
    };
    let same = |key| both(key).is_some_and(|(known, new)| known == new);
    same("type") && same("index") && both("id").is_none_or(|(known, new)| known == new)
}

fn extend(begun: &mut Map<String, Value>, fragment: &Map<String, Value>) {
    for (key, value) in fragment.iter().filter(|(_, value)| !value.is_null()) {
        match (begun.get_mut(key), value) {
            (Some(Value::String(said)), Value::String(more))
                if IN_PIECES.contains(&key.as_str()) =>
            {
                said.push_str(more)
            }
            (Some(known), _) => known.clone_from(value),
            (None, _) => drop(begun.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fragments_become_the_details_that_they_are_of() {
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
