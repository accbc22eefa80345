//! Reads optional fields of an answer leniently: a malformed field is treated as absent and does
//! not fail the answer.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use deerflow_core::messages::UsageMetadata;

/// Reads a field. Returns `None` if it has an unexpected type.
pub(crate) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Reads a text, without a copy if it has no escapes. Returns `None` if the field has another type.
pub(crate) fn text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'de, str>>, D::Error> {
    deserializer.deserialize_any(LenientText)
}

struct LenientText;

impl<'de> Visitor<'de> for LenientText {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Reads a token count. Returns `None` if it is invalid.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(count_of(&Value::deserialize(deserializer)?))
}

/// Returns the token count of a value: a number or its text, rounded, at most
/// [`UsageMetadata::MOST`]. Returns `None` for a negative number and for any other value.
pub(crate) fn count_of(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count.min(UsageMetadata::MOST));
    }
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // A float beyond the largest integer becomes the largest one.
    (number >= 0.0).then_some((number.round() as u64).min(UsageMetadata::MOST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default, deserialize_with = "text")]
        name: Option<Cow<'a, str>>,
        after: u8,
    }

    #[test]
    fn text_of_another_type_is_absent() {
        let read = |name: &str| {
            let json = format!(r#"{{"name": {name}, "after": 1}}"#);
            let named: Named<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(named.after, 1);
            let is_borrowed = matches!(named.name, Some(Cow::Borrowed(_)));
            (named.name.map(Cow::into_owned), is_borrowed)
        };
        assert_eq!(read(r#""gpt""#), (Some("gpt".to_owned()), true));
        assert_eq!(read(r#""g\np""#), (Some("g\np".to_owned()), false));
        for other in [
            "null",
            "true",
            "7",
            "-7",
            "7.5",
            r#"["a", {}]"#,
            r#"{"a": [1]}"#,
        ] {
            assert_eq!(read(other), (None, false), "{other}");
        }
        let absent: Named<'_> = serde_json::from_str(r#"{"after": 2}"#).unwrap();
        assert_eq!((absent.name, absent.after), (None, 2));
    }

    #[test]
    fn count_accepts_numbers_and_numeric_texts() {
        for (value, expected) in [
            (json!(7), Some(7)),
            (json!(7.6), Some(8)),
            (json!("7"), Some(7)),
            (json!(" 7.0 "), Some(7)),
            (json!(0), Some(0)),
            (json!(1e300), Some(UsageMetadata::MOST)),
            (json!(u64::MAX), Some(UsageMetadata::MOST)),
            (json!("1e999"), Some(UsageMetadata::MOST)),
            (json!(-5), None),
            (json!(-0.1), None),
            (json!("-5"), None),
            (json!("many"), None),
            (json!("NaN"), None),
            (json!(null), None),
            (json!(true), None),
            (json!([7]), None),
            (json!({"tokens": 7}), None),
        ] {
            assert_eq!(count_of(&value), expected, "{value}");
        }
    }
}
