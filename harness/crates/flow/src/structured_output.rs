//! Extraction of a JSON object from the text of a model. Pure.

use serde_json::Value;

use crate::adapter::TurnMode;
use crate::bounded::prefix;

/// Part of a text that is searched, in bytes. A port holds no more text than this.
const MAX_SEARCHED_BYTES: usize = 256 << 10;
/// Maximum number of `{` that are tried as the start of an object.
const MAX_STARTS: usize = 4_096;
const FENCE: &str = "```";

/// Returns the JSON object in a text: that of the first fenced block, else the first that starts at
/// any `{`. Empty objects are ignored. An evaluation prefers an object with the key `score`.
pub fn structured_output(text: &str, mode: TurnMode) -> Option<Value> {
    let text = prefix(text, MAX_SEARCHED_BYTES);
    let mut first = None;
    for object in fenced_objects(text).chain(embedded_objects(text)) {
        if mode != TurnMode::Evaluate || object.get("score").is_some() {
            return Some(object);
        }
        first.get_or_insert(object);
    }
    first
}

/// Returns the final text of a turn: the trimmed text, or in an evaluation the reason of its
/// structured output, if that is not blank.
pub fn final_text(text: &str, structured: Option<&Value>, mode: TurnMode) -> String {
    let reason = structured
        .filter(|_| mode == TurnMode::Evaluate)
        .and_then(|object| object.get("reason")?.as_str())
        .map(str::trim)
        .filter(|reason| !reason.is_empty());
    reason.unwrap_or(text.trim()).to_owned()
}

/// Returns the objects that are the whole content of a fenced block.
fn fenced_objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    // Every second piece lies between two fences; a last fence may be missing.
    let blocks = text.split(FENCE).skip(1).step_by(2).take(MAX_STARTS);
    blocks.filter_map(|block| {
        let content = match block.split_once('\n') {
            Some((info, content)) if !info.contains('{') => content,
            _ => block,
        };
        serde_json::from_str(content.trim())
            .ok()
            .filter(is_filled_object)
    })
}

/// Returns the objects that start at any `{`, also inside of other objects. The parser's depth
/// limit bounds the attempts that read the same bytes.
fn embedded_objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    let starts = text.match_indices('{').take(MAX_STARTS);
    starts.filter_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok().filter(is_filled_object)
    })
}

fn is_filled_object(value: &Value) -> bool {
    value.as_object().is_some_and(|object| !object.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_found_in_fences_and_in_prose() {
        let table = [
            ("plain", json!(null)),
            ("{\"a\":1}", json!({"a": 1})),
            ("so: {\"a\":1} and {\"b\":2}", json!({"a": 1})),
            ("{x} {} [1] {\"a\":{\"b\":2}}", json!({"a": {"b": 2}})),
            ("{\"a\":1}\n```json\n{\"b\":2}\n```", json!({"b": 2})),
            ("```\nno\n```\n```json\r\n{\"b\":2}\r\n```", json!({"b": 2})),
            ("```json\n{\"b\":2}", json!({"b": 2})),
            ("```{\"b\":2}```", json!({"b": 2})),
            ("```json\nresult: {\"b\":2}\n```", json!({"b": 2})),
            ("```json\n[1]\n``` {\"c\": \"}{\"}", json!({"c": "}{"})),
        ];
        for (text, expected) in table {
            let found = structured_output(text, TurnMode::Normal).unwrap_or_default();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn evaluation_prefers_object_with_score() {
        let text = "```json\n{\"a\":1}\n``` then {\"result\":{\"score\":0.5}}";
        let found = |mode| structured_output(text, mode).unwrap();
        assert_eq!(found(TurnMode::Evaluate), json!({"score": 0.5}));
        assert_eq!(found(TurnMode::Plan), json!({"a": 1}));
        let without = structured_output("{\"a\":1}", TurnMode::Evaluate);
        assert_eq!(without, Some(json!({"a": 1})));
    }

    #[test]
    fn reason_replaces_text_of_evaluations_only() {
        let object = json!({"score": 1, "reason": " fine "});
        let text = |mode| final_text(" raw ", Some(&object), mode);
        assert_eq!(text(TurnMode::Evaluate), "fine");
        assert_eq!(text(TurnMode::Normal), "raw");
        let blank = json!({"score": 1, "reason": " "});
        assert_eq!(final_text("raw", Some(&blank), TurnMode::Evaluate), "raw");
    }

    #[test]
    fn hostile_text_is_searched_within_limits() {
        for piece in ["{", "{\"a\":", "{\"a\":[", "```", "{\"a\":1,", "ü{"] {
            let text = piece.repeat((4 << 20) / piece.len());
            assert_eq!(
                structured_output(&text, TurnMode::Evaluate),
                None,
                "{piece}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "[{}\"a:,`\\n\\[\\]1ü ]{0,80}") {
            let found = structured_output(&text, TurnMode::Evaluate);
            prop_assert!(found.is_none_or(|value| is_filled_object(&value)));
        }
    }
}
