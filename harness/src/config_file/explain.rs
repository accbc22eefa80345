//! Converts deserialization errors to readable messages.

use figment::error::{Actual, Kind};

use super::document::{Content, Node};
use super::unknown_keys::nearest;

/// Returns the path of the invalid value and a message.
pub(super) fn explain(error: &figment::Error, root: &Node) -> (Vec<String>, String) {
    let found = |actual: &Actual| match &root.follow(&error.path).0.content {
        // The value itself may be a secret.
        Content::Text {
            variable: Some(name),
            ..
        } => format!("the value of ${name}"),
        _ => describe_actual(actual),
    };
    let message = match &error.kind {
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            format!("is {}, allowed: {}", found(actual), expectation(expected))
        }
        Kind::UnknownVariant(word, choices) => {
            let hint = nearest(word, choices.iter().copied())
                .map(|suggestion| format!("; did you mean `{suggestion}`?"))
                .unwrap_or_default();
            let word = found(&Actual::Str(word.clone()));
            format!("is {word}, allowed: {}{hint}", choices.join(", "))
        }
        Kind::MissingField(field) => format!("lacks the key `{field}`"),
        Kind::Message(message) => format!("is not allowed: {message}"),
        other => format!("is not allowed: {other}"),
    };
    (error.path.clone(), message)
}

fn describe_actual(actual: &Actual) -> String {
    match actual {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Str(text) => format!("{text:?}"),
        Actual::Unit | Actual::Option => "empty".to_owned(),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

fn expectation(expected: &str) -> String {
    match expected {
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
        "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "path string" | "string or map" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        map if map.starts_with("struct ") || map.starts_with("a map") => "a map".to_owned(),
        other => other.to_owned(),
    }
}
