//! Repairs JSON text that only strict readers refuse: halves of surrogate pairs, and numbers beyond any float.
//!
//! Programs that cut a text into pieces may cut between the two `\u` escapes of one character.

/// The text that a number beyond any float becomes.
const HUGE: &str = "1e308";
/// What stands for half a character.
const REPLACEMENT: &str = "\u{fffd}";

/// JSON in which each lone half of a surrogate pair is U+FFFD and each number is finite. Text that is no JSON stays no JSON.
pub(crate) fn repaired(json: &str) -> String {
    repair(json, None, false).0
}

/// Repairs the events of one stream, which may cut a character between two events.
#[cfg(any(test, feature = "providers"))]
#[derive(Debug, Default)]
pub(crate) struct StreamRepair {
    /// The first half of a character that ended a text.
    pending: Option<u16>,
}

#[cfg(any(test, feature = "providers"))]
impl StreamRepair {
    /// The event as JSON that strict readers take, as far as it is JSON at all. The second half of a character at the start of a text
    /// follows the first half at the end of an earlier one; a first half that nothing follows is left out.
    pub(crate) fn event(&mut self, payload: &[u8]) -> String {
        let (text, pending) = repair(&String::from_utf8_lossy(payload), self.pending, true);
        self.pending = pending;
        text
    }
}

/// The repaired text, and the half that waits for its other. `holds` keeps a first half at the end of a text back.
fn repair(json: &str, mut pending: Option<u16>, holds: bool) -> (String, Option<u16>) {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    let mut quoted = false;
    // Where the text under way begins.
    let mut begun = None;
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
                        if holds && rest.starts_with('"') {
                            pending = Some(high);
                        } else {
                            whole.push_str(REPLACEMENT);
                        }
                        continue;
                    }
                    Some(low @ 0xdc00..=0xdfff) => {
                        rest = &rest[6..];
                        match pending.take_if(|_| begun == Some(whole.len())) {
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
                begun = quoted.then_some(whole.len() + 1);
            }
            (false, '-' | '0'..='9') => {
                length = rest
                    .find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
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

/// The number in the `\uXXXX` that a text begins with.
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
    fn half_a_character_costs_itself_alone() {
        assert_eq!(
            read(r#"{"a": "x\ud83dy", "b": "\ude00", "c": "\ud83d\ud83d\ude00\n\\ud83d"}"#),
            { json!({"a": "x\u{fffd}y", "b": "\u{fffd}", "c": "\u{fffd}😀\n\\ud83d"}) }
        );
    }

    #[test]
    fn a_number_beyond_any_float_is_a_finite_one() {
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
    fn broken_bytes_cost_themselves_alone() {
        let event = StreamRepair::default().event(b"{\"t\": \"a\xf0\x9fb\"}");
        assert_eq!(
            serde_json::from_str::<Value>(&event).unwrap(),
            json!({"t": "a\u{fffd}b"})
        );
    }

    proptest! {
        #[test]
        fn what_is_json_stays_as_it_is(text in "\\PC*", number in any::<f64>()) {
            let json = json!([text, number, {"k": text}]).to_string();
            prop_assert_eq!(repaired(&json), json);
        }

        #[test]
        fn anything_is_taken(text in "(\\\\|u|d83d|de00|\"|[0-9e.-]|ä|\\PC)*") {
            let _repaired = StreamRepair::default().event(text.as_bytes());
        }
    }
}
