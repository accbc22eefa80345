//! Repairs JSON text that strict parsers reject: lone surrogates, and numbers beyond the range of
//! floats.
//!
//! Lone surrogates occur because some programs split a text between the two `\u` escapes of one
//! character.

/// Replacement of a number beyond the range of floats.
const HUGE: &str = "1e308";
/// Replacement of a lone surrogate.
const REPLACEMENT: &str = "\u{fffd}";

/// Replaces each lone surrogate by U+FFFD and each infinite number by a finite one. Text that is
/// not JSON stays invalid.
pub fn repaired(json: &str) -> String {
    repair(json, None, false).0
}

/// Repairs the events of one stream, which may split a character between two events.
#[derive(Debug, Default)]
pub struct StreamRepair {
    /// High surrogate at the end of the previous text.
    pending: Option<u16>,
}

impl StreamRepair {
    /// Returns the event as strictly valid JSON, if it is JSON at all. A low surrogate at the start
    /// of a text is joined with the high surrogate at the end of an earlier one; a high surrogate
    /// without a successor is dropped.
    pub fn event(&mut self, payload: &[u8]) -> String {
        let (text, pending) = repair(&String::from_utf8_lossy(payload), self.pending, true);
        self.pending = pending;
        text
    }
}

/// Returns the repaired text and the pending high surrogate. With `defers_last`, a high surrogate
/// at the end of a text is returned as pending for the next event.
fn repair(json: &str, mut pending: Option<u16>, defers_last: bool) -> (String, Option<u16>) {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    let mut quoted = false;
    // Start of the current text.
    let mut text_start = None;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match (quoted, first) {
            (true, '\\') => {
                length = 2.min(rest.len())
                    + rest[1..]
                        .chars()
                        .next()
                        .map_or(0, |escaped| escaped.len_utf8() - 1);
                match unit(rest) {
                    Some(0xd800..=0xdbff) if matches!(unit(&rest[6..]), Some(0xdc00..=0xdfff)) => {
                        length = 12
                    }
                    Some(high @ 0xd800..=0xdbff) => {
                        rest = &rest[6..];
                        if defers_last && rest.starts_with('"') {
                            pending = Some(high);
                        } else {
                            whole.push_str(REPLACEMENT);
                        }
                        continue;
                    }
                    Some(low @ 0xdc00..=0xdfff) => {
                        rest = &rest[6..];
                        match pending.take_if(|_| text_start == Some(whole.len())) {
                            Some(high) => whole.push_str(&format!("\\u{high:04x}\\u{low:04x}")),
                            None => whole.push_str(REPLACEMENT),
                        }
                        continue;
                    }
                    Some(_) => length = 6,
                    None => {}
                }
            }
            (_, '"') => {
                quoted = !quoted;
                text_start = quoted.then_some(whole.len() + 1);
            }
            (false, '-' | '0'..='9') => {
                length = rest
                    .find(|ch: char| !matches!(ch, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                    .unwrap_or(rest.len());
                let number: Option<f64> = rest[..length].parse().ok();
                if number.is_some_and(f64::is_infinite) {
                    whole.push_str(if first == '-' { "-" } else { "" });
                    whole.push_str(HUGE);
                    rest = &rest[length..];
                    continue;
                }
            }
            _ => {}
        }
        whole.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (whole, pending)
}

/// Parses the number of a leading `\uXXXX`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(json: &str) -> Value {
        serde_json::from_str(&repaired(json)).unwrap()
    }

    #[test]
    fn lone_surrogate_is_replaced() {
        assert_eq!(
            read(r#"{"a": "x\ud83dy", "b": "\ude00", "c": "\ud83d\ud83d\ude00\n\\ud83d"}"#),
            { json!({"a": "x\u{fffd}y", "b": "\u{fffd}", "c": "\u{fffd}😀\n\\ud83d"}) }
        );
    }

    #[test]
    fn huge_number_becomes_finite() {
        let long = "9".repeat(400);
        assert_eq!(
            read(&format!(r#"[1e999, -{long}, -5, 1.5e3, "1e999"]"#)),
            json!([1e308, -1e308, -5, 1500.0, "1e999"])
        );
    }

    #[test]
    fn a_character_cut_between_two_events_is_joined() {
        let mut repair = StreamRepair::default();
        let mut text = |event: &str| {
            serde_json::from_str::<Value>(&repair.event(event.as_bytes())).unwrap()["t"].clone()
        };
        assert_eq!(text(r#"{"t": "a\ud83d"}"#), "a");
        assert_eq!(text(r#"{"t": ""}"#), "");
        assert_eq!(text(r#"{"t": "\ude00b"}"#), "😀b");
        assert_eq!(text(r#"{"t": "\ude00b"}"#), "\u{fffd}b");
        assert_eq!(text(r#"{"t": "\ud83dc"}"#), "\u{fffd}c");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let event = StreamRepair::default().event(b"{\"t\": \"a\xf0\x9fb\"}");
        assert_eq!(
            serde_json::from_str::<Value>(&event).unwrap(),
            json!({"t": "a\u{fffd}b"})
        );
    }

    proptest! {
        #[test]
        fn valid_json_is_unchanged(text in "\\PC*", number in any::<f64>()) {
            let json = json!([text, number, {"k": text}]).to_string();
            prop_assert_eq!(repaired(&json), json);
        }

        #[test]
        fn any_input_is_accepted(text in "(\\\\|u|d83d|de00|\"|[0-9e.-]|ä|\\PC)*") {
            let _repaired = StreamRepair::default().event(text.as_bytes());
        }
    }
}
