//! Finds a number in a JSON text that does not fit into 64 bits, and its location.

use serde_json::Value;

use crate::error::Issue;

/// Number of digits of the smallest integer that may not fit into 64 bits.
const MIN_OVERFLOW_DIGITS: usize = 19;

/// `true` if the text may hold an integer that does not fit. Cheap, with false positives.
pub(super) fn may_hold_out_of_range_integer(text: &[u8]) -> bool {
    let mut run = 0;
    text.iter().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run >= MIN_OVERFLOW_DIGITS
    })
}

/// Returns the issue of the first number that fits neither a 64-bit integer nor a finite double;
/// its location begins with `source`. Stops at invalid JSON.
pub(super) fn out_of_range_number(text: &[u8], source: &str) -> Option<Issue> {
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => open.push(OpenContainer::Object {
                key: String::new(),
                expects_key: true,
            }),
            b'[' => open.push(OpenContainer::List(0)),
            b'}' | b']' => {
                open.pop()?;
            }
            b',' => match open.last_mut()? {
                OpenContainer::List(index) => *index += 1,
                OpenContainer::Object { expects_key, .. } => *expects_key = true,
            },
            b'"' => {
                let end = end_of_string(text, at)?;
                if let Some(OpenContainer::Object { key, expects_key }) = open.last_mut()
                    && std::mem::take(expects_key)
                {
                    *key = serde_json::from_slice(&text[at..end]).ok()?;
                }
                at = end;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let end = text[at..]
                    .iter()
                    .position(|byte| !is_of_number(*byte))
                    .map_or(text.len(), |length| at + length);
                let literal = std::str::from_utf8(&text[at..end]).ok()?;
                if let Some((kind, message)) = range_error(literal) {
                    let location = std::iter::once(source.into())
                        .chain(open.iter().map(OpenContainer::step))
                        .collect();
                    return Some(Issue::new(kind, location, message, &literal.into()));
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// An object or a list that is still open.
enum OpenContainer {
    Object { key: String, expects_key: bool },
    List(usize),
}

impl OpenContainer {
    fn step(&self) -> Value {
        match self {
            Self::Object { key, .. } => key.as_str().into(),
            Self::List(index) => (*index).into(),
        }
    }
}

/// Returns the index after the closing quote of the string that opens at `from`.
fn end_of_string(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn range_error(literal: &str) -> Option<(&'static str, &'static str)> {
    let is_integer = literal
        .strip_prefix('-')
        .unwrap_or(literal)
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    if is_integer {
        let fits = literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok();
        (!fits).then_some((
            "int_parsing_size",
            "Input should be an integer from -9223372036854775808 to 18446744073709551615",
        ))
    } else {
        let is_infinite = literal.parse::<f64>().is_ok_and(f64::is_infinite);
        is_infinite.then_some((
            "finite_number",
            "Input should be a finite number: its absolute value is at most 1.7976931348623157e308",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn location(text: &str) -> Option<Value> {
        out_of_range_number(text.as_bytes(), "body").map(|issue| issue.loc.into())
    }

    #[test]
    fn number_beyond_64_bits_is_reported_with_its_location() {
        for (text, expected) in [
            (r#"{"a":18446744073709551616}"#, json!(["body", "a"])),
            (r#"{"a":-9223372036854775809}"#, json!(["body", "a"])),
            (
                r#"{"x":[1,{"y":"18446744073709551616"}],"a":{"b":[0, [1, 2] ,1e400]}}"#,
                json!(["body", "a", "b", 2]),
            ),
            (
                r#"{"\u0061\"}":99999999999999999999}"#,
                json!(["body", "a\"}"]),
            ),
            (r#"[[],{"k":{}},-1E999]"#, json!(["body", 2])),
            ("18446744073709551616", json!(["body"])),
        ] {
            assert_eq!(location(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn fitting_numbers_and_texts_are_accepted() {
        for text in [
            r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":1e308,"d":1e-400,"e":-0,"f":0.12345678901234567890123}"#,
            r#"{"99999999999999999999":"99999999999999999999 1e999"}"#,
            r#""99999999999999999999"#,
            "}{99999999999999999999",
            "",
        ] {
            assert_eq!(location(text), None, "{text}");
        }
        assert!(
            may_hold_out_of_range_integer(b"[9223372036854775808]")
                && !may_hold_out_of_range_integer(b"[123456789012345678, 123]")
        );
    }
}
