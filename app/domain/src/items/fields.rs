//! Selects the texts of an item that are embedded: `$` for the whole value, or a path such as
//! `notes[*].text`.

use serde_json::{Map, Value};

/// Maximum number of embedded texts per item.
pub const MAX_TEXTS: usize = 64;

/// Path into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    /// Element of a list; a negative index counts from the end.
    At(i64),
    /// Every element of a list, or every field of an object.
    All,
}

impl FieldPath {
    /// Parses a path. Text in brackets that is neither a number nor `*` is a key.
    pub fn parse(text: &str) -> Self {
        if text == "$" {
            return Self(Vec::new());
        }
        let text = text.strip_prefix("$.").unwrap_or(text);
        let steps = text.split('.').flat_map(|part| {
            let (name, brackets) = part.split_once('[').unwrap_or((part, ""));
            let name = (!name.is_empty()).then(|| {
                if name == "*" {
                    Step::All
                } else {
                    Step::Key(name.to_owned())
                }
            });
            let inside = brackets
                .split('[')
                .map(|inside| inside.trim_end_matches(']'))
                .filter(|inside| !inside.is_empty());
            let inside: Vec<Step> = inside
                .map(|inside| match (inside, inside.parse()) {
                    ("*", _) => Step::All,
                    (_, Ok(at)) => Step::At(at),
                    (key, _) => Step::Key(key.to_owned()),
                })
                .collect();
            name.into_iter().chain(inside)
        });
        Self(steps.collect())
    }

    /// Returns the texts at the path: strings unchanged, other values as JSON; null and absent
    /// values are skipped.
    pub fn texts(&self, value: &Map<String, Value>) -> Vec<String> {
        let Some((Step::Key(first), rest)) = self.0.split_first() else {
            let whole = Value::Object(value.clone());
            return at(&whole, &self.0).into_iter().filter_map(text).collect();
        };
        value
            .get(first)
            .map(|value| at(value, rest))
            .unwrap_or_default()
            .into_iter()
            .filter_map(text)
            .collect()
    }
}

fn at<'a>(value: &'a Value, steps: &[Step]) -> Vec<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![value];
    };
    let next: Vec<&Value> = match (step, value) {
        (Step::Key(key), Value::Object(map)) => map.get(key).into_iter().collect(),
        (Step::At(index), Value::Array(items)) => {
            let from_end = || {
                usize::try_from(index.unsigned_abs())
                    .ok()
                    .and_then(|back| items.len().checked_sub(back))
            };
            let index = usize::try_from(*index).ok().or_else(from_end);
            index
                .and_then(|index| items.get(index))
                .into_iter()
                .collect()
        }
        (Step::All, Value::Array(items)) => items.iter().collect(),
        (Step::All, Value::Object(map)) => map.values().collect(),
        _ => Vec::new(),
    };
    next.into_iter().flat_map(|value| at(value, rest)).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_select_their_texts() {
        let value = json!({
            "title": "t", "n": 5, "none": null, "blank": " ",
            "notes": [{"text": "a"}, {"text": "b"}, {"other": 1}], "deep": {"x": {"y": "z"}},
        });
        let value = value.as_object().unwrap();
        for (path, texts) in [
            ("title", vec!["t"]),
            ("n", vec!["5"]),
            ("none", vec![]),
            ("blank", vec![]),
            ("absent.x", vec![]),
            ("notes[*].text", vec!["a", "b"]),
            ("notes[0].text", vec!["a"]),
            ("notes[-2].text", vec!["b"]),
            ("notes[9].text", vec![]),
            ("deep.x.y", vec!["z"]),
            ("deep.*.y", vec!["z"]),
            ("deep[x].y", vec!["z"]),
            ("deep.x", vec![r#"{"y":"z"}"#]),
            ("$.title", vec!["t"]),
        ] {
            assert_eq!(FieldPath::parse(path).texts(value), texts, "{path}");
        }
        assert_eq!(
            FieldPath::parse("$").texts(value),
            [json!(value).to_string()]
        );
    }
}
