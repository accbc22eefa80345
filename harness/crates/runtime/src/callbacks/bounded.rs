//! Payloads of journal rows within a maximum size. They stay objects, unlike a text that is cut.

use serde_json::{Map, Value};

/// Maximum size of all texts and names of a payload in bytes. The last limits may exceed it.
const MAX_BYTES: usize = 48 << 10;
/// Limits, from wide to narrow: the first that keeps a payload within its size applies. Ids and
/// codes are shorter than each of them.
const LIMITS: [Limits; 4] = [
    Limits::new(4_000, 200),
    Limits::new(500, 100),
    Limits::new(200, 20),
    Limits::new(200, 4),
];
/// Maximum characters of a name.
const MAX_NAME: usize = 200;
/// Maximum depth of a payload.
const MAX_DEPTH: usize = 12;
/// Depth from which the number of entries is limited: above it are the fields of the event itself.
const OPEN_DEPTH: usize = 2;
/// Mark at the end of a text that was cut.
const MARK: &str = "…";

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Maximum characters of one text.
    text: usize,
    /// Maximum number of entries of a list or an object.
    entries: usize,
}

impl Limits {
    const fn new(text: usize, entries: usize) -> Self {
        Self { text, entries }
    }
}

/// Returns a copy of a payload in which texts have at most `max_chars` characters, and fewer if all
/// of them together are too large.
pub(super) fn bounded(payload: &Value, max_chars: usize) -> Value {
    let mut value = Value::Null;
    for limits in LIMITS {
        let text = max_chars.clamp(MAX_NAME, limits.text.max(MAX_NAME));
        let mut copy = Copy {
            limits: Limits { text, ..limits },
            bytes: 0,
        };
        value = copy.of(payload, 0);
        if copy.bytes <= MAX_BYTES {
            break;
        }
    }
    value
}

struct Copy {
    limits: Limits,
    /// Size of the copied values, estimated.
    bytes: usize,
}

impl Copy {
    fn of(&mut self, value: &Value, depth: usize) -> Value {
        let entries = if depth < OPEN_DEPTH {
            usize::MAX
        } else {
            self.limits.entries
        };
        match value {
            Value::String(text) => self.text(text, self.limits.text).into(),
            Value::Array(_) | Value::Object(_) if depth == MAX_DEPTH => MARK.into(),
            Value::Array(items) => {
                let items = items.iter().take(entries);
                items.map(|item| self.of(item, depth + 1)).collect()
            }
            Value::Object(fields) => {
                let fields = fields.iter().take(entries);
                let copied = fields
                    .map(|(key, value)| (self.text(key, MAX_NAME), self.of(value, depth + 1)));
                Value::Object(copied.collect::<Map<_, _>>())
            }
            other => {
                self.bytes += 8;
                other.clone()
            }
        }
    }

    fn text(&mut self, text: &str, max: usize) -> String {
        let cut = match text.char_indices().nth(max) {
            Some((end, _)) => format!("{}{MARK}", &text[..end]),
            None => text.to_owned(),
        };
        self.bytes += cut.len();
        cut
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_text_is_cut_and_the_payload_stays_an_object() {
        let payload = json!({"nodeId": "a", "inputs": {"data": "é".repeat(9_000)}, "visit": 3});
        let cut = bounded(&payload, 10_000);
        assert_eq!((&cut["nodeId"], &cut["visit"]), (&json!("a"), &json!(3)));
        let length = |cut: &Value| {
            cut["inputs"]["data"]
                .as_str()
                .map(|text| text.chars().count())
        };
        assert_eq!(length(&cut), Some(4_001));
        assert_eq!(length(&bounded(&payload, 300)), Some(301));
    }

    #[test]
    fn large_payload_stays_within_the_maximum_with_its_fields() {
        let texts = json!(vec!["x".repeat(10_000); 500]);
        let payload = json!({"payload": {"inputs": {"a": texts, "b": texts}, "visit": 3}});
        let cut = bounded(&payload, 10_000);
        assert!(cut.to_string().len() < 2 * MAX_BYTES);
        assert_eq!(cut["payload"]["visit"], 3);
        let numbers = json!({"payload": {"inputs": vec![vec![1; 10_000]; 500]}});
        assert!(bounded(&numbers, 10_000).to_string().len() < MAX_BYTES);
    }

    #[test]
    fn deep_payload_is_cut_at_the_maximum_depth() {
        let deep = (0..100).fold(json!("end"), |inner, _| json!([inner]));
        assert!(!bounded(&deep, 100).to_string().contains("end"));
    }
}
