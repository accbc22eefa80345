//! Reads the fields of a JSON object one by one and remembers everything that was wrong, so that one answer names it all.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Issue};

/// An object being read. Null counts as absent: where the platform refuses it, the body was refused before. Fields nobody asks for
/// are ignored.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    source: &'static str,
    map: Map<String, Value>,
    issues: Vec<Issue>,
}

impl Fields {
    /// Begins to read `map`, which came as `source` (`body`, `query`).
    pub fn new(source: &'static str, map: Map<String, Value>) -> Self {
        Self {
            source,
            map,
            issues: Vec::new(),
        }
    }

    /// The object as it came.
    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }

    /// The object as it came, to look at.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// A field, unless it is absent or null.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Refuses null for each of `keys`: to leave a field out is something else.
    pub fn refuse_nulls(&mut self, keys: &[&str]) {
        for key in keys {
            if self.map.get(*key).is_some_and(Value::is_null) {
                let _none: Option<()> =
                    self.refuse("type", key, "Input should not be null", &Value::Null);
            }
        }
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let value = self.value(key)?.clone();
        match value {
            Value::String(text) => Some(text),
            other => self.refuse("string_type", key, "Input should be a valid string", &other),
        }
    }

    /// A text that must be there; empty when it is not.
    pub fn required_text(&mut self, key: &str) -> String {
        if self.value(key).is_none() {
            self.missing(key);
        }
        self.text(key).unwrap_or_default()
    }

    /// A truth value.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.value(key)?.clone();
        match value {
            Value::Bool(flag) => Some(flag),
            other => self.refuse("bool_type", key, "Input should be a valid boolean", &other),
        }
    }

    /// An object.
    pub fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        let value = self.value(key)?.clone();
        match value {
            Value::Object(map) => Some(map),
            other => self.refuse(
                "dict_type",
                key,
                "Input should be a valid dictionary",
                &other,
            ),
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.value(key)?.clone();
        let texts = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        });
        if texts.is_none() {
            return self.refuse(
                "list_type",
                key,
                "Input should be a valid list of strings",
                &value,
            );
        }
        texts
    }

    /// A list of some of these words.
    pub fn names(&mut self, key: &str, words: &[&str]) -> Option<Vec<String>> {
        let names = self.texts(key)?;
        match names.iter().find(|name| !words.contains(&name.as_str())) {
            None => Some(names),
            Some(unknown) => self.refuse(
                "literal_error",
                key,
                format!("Input should be one of {words:?}"),
                &unknown.as_str().into(),
            ),
        }
    }

    /// A whole number within `range`.
    pub fn number(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?.clone();
        match value.as_u64() {
            Some(number) if range.contains(&number) => Some(number),
            _ => {
                let issue = number_issue(vec![self.source.into(), key.into()], &value, range);
                self.issues.push(issue);
                None
            }
        }
    }

    /// One of some words.
    pub fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = self.value(key)?.clone();
        let known = value
            .as_str()
            .and_then(|text| words.iter().find(|(word, _)| *word == text));
        if let Some((_, meaning)) = known {
            return Some(*meaning);
        }
        let expected = words
            .iter()
            .map(|(word, _)| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" or ");
        self.issues.push(
            Issue::new(
                "literal_error",
                vec![self.source.into(), key.into()],
                format!("Input should be {expected}"),
                &value,
            )
            .ctx(json!({ "expected": expected })),
        );
        None
    }

    /// Remembers that a field is wrong. Always `None`, to be returned as the field's value.
    pub fn refuse<T>(
        &mut self,
        kind: &'static str,
        key: &str,
        msg: impl Into<String>,
        input: &Value,
    ) -> Option<T> {
        self.issues.push(Issue::new(
            kind,
            vec![self.source.into(), key.into()],
            msg,
            input,
        ));
        None
    }

    /// Remembers an issue made elsewhere.
    pub fn push(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    /// Remembers that a required field is absent.
    pub fn missing(&mut self, key: &str) {
        let input = Value::Object(self.map.clone());
        self.issues.push(Issue::new(
            "missing",
            vec![self.source.into(), key.into()],
            format!("Field required: {key}"),
            &input,
        ));
    }

    /// Everything read so far was fine, or all that was not.
    pub fn check(&mut self) -> Result<(), ApiError> {
        if self.issues.is_empty() {
            Ok(())
        } else {
            Err(ApiError::Invalid(std::mem::take(&mut self.issues)))
        }
    }

    /// As [`Fields::check`], at the end of reading.
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.check()
    }
}

/// The issue of a value that is not a whole number within `range`.
pub(crate) fn number_issue(loc: Vec<Value>, value: &Value, range: RangeInclusive<u64>) -> Issue {
    match value
        .as_i64()
        .map(i128::from)
        .or_else(|| value.as_u64().map(i128::from))
    {
        Some(number) => range_issue(loc, number, range, value),
        None => Issue::new("int_type", loc, "Input should be a valid integer", value),
    }
}

/// The issue of a whole number outside of `range`, which came as `input`.
pub(super) fn range_issue(
    loc: Vec<Value>,
    number: i128,
    range: RangeInclusive<u64>,
    input: &Value,
) -> Issue {
    let (low, high) = (*range.start(), *range.end());
    if number < i128::from(low) {
        Issue::new(
            "greater_than_equal",
            loc,
            format!("Input should be greater than or equal to {low}"),
            input,
        )
        .ctx(json!({ "ge": low }))
    } else {
        Issue::new(
            "less_than_equal",
            loc,
            format!("Input should be less than or equal to {high}"),
            input,
        )
        .ctx(json!({ "le": high }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::new("body", value.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn null_is_absent_and_unknown_keys_are_ignored() {
        let mut body = fields(json!({ "a": null, "zzz": [1] }));
        assert_eq!(body.text("a"), None);
        assert_eq!(body.object("b"), None);
        assert_eq!(body.finish(), Ok(()));
    }

    #[test]
    fn every_wrong_field_is_named_in_one_answer() {
        let mut body = fields(json!({ "a": 1, "n": 0, "w": "x", "l": [1], "o": "y" }));
        assert_eq!(body.text("a"), None);
        assert_eq!(body.number("n", 1..=10), None);
        assert_eq!(body.word("w", &[("p", 1), ("q", 2)]), None);
        assert_eq!(body.texts("l"), None);
        assert_eq!(body.object("o"), None);
        let Err(ApiError::Invalid(issues)) = body.finish() else {
            panic!("expected issues")
        };
        let kinds: Vec<_> = issues.iter().map(|issue| issue.kind).collect();
        assert_eq!(
            kinds,
            [
                "string_type",
                "greater_than_equal",
                "literal_error",
                "list_type",
                "dict_type"
            ]
        );
        assert_eq!(issues[1].ctx, Some(json!({ "ge": 1 })));
    }
}
