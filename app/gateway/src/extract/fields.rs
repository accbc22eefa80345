//! Reads the fields of a JSON object one by one and collects all issues, so that one error response
//! names them all.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Issue};

/// A JSON object whose fields are read one by one. Null counts as absent: where the platform
/// rejects null, the body was rejected before. Fields that are never read are ignored.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    source: &'static str,
    map: Map<String, Value>,
    issues: Vec<Issue>,
}

impl Fields {
    /// Begins to read `map` from `source` (`body` or `query`).
    pub fn new(source: &'static str, map: Map<String, Value>) -> Self {
        Self {
            source,
            map,
            issues: Vec::new(),
        }
    }

    /// Returns the object unchanged.
    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }

    /// The unchanged object.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// Returns a field, unless it is absent or null.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Rejects null for each of `keys`; a missing field is allowed.
    pub fn refuse_nulls(&mut self, keys: &[&str]) {
        for key in keys {
            if self.map.get(*key).is_some_and(Value::is_null) {
                let _none: Option<()> =
                    self.refuse("type", key, "Input should not be null", &Value::Null);
            }
        }
    }

    /// Reads a string.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let value = self.value(key)?.clone();
        match value {
            Value::String(text) => Some(text),
            other => self.refuse("string_type", key, "Input should be a valid string", &other),
        }
    }

    /// Reads a required string; empty if it is missing.
    pub fn required_text(&mut self, key: &str) -> String {
        if self.value(key).is_none() {
            self.missing(key);
        }
        self.text(key).unwrap_or_default()
    }

    /// Reads a boolean.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.value(key)?.clone();
        match value {
            Value::Bool(flag) => Some(flag),
            other => self.refuse("bool_type", key, "Input should be a valid boolean", &other),
        }
    }

    /// Reads an object.
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

    /// Reads a list of strings.
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

    /// Reads a list of strings, each of which must be in `words`.
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

    /// Reads an integer within `range`.
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

    /// Reads a string that must be in `words`, and returns its value.
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

    /// Adds an issue for a field. Always returns `None`, so that the caller can return it as the
    /// field's value.
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

    /// Adds an issue.
    pub fn push(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    /// Adds an issue for a missing field.
    pub fn missing(&mut self, key: &str) {
        let input = Value::Object(self.map.clone());
        self.issues.push(Issue::new(
            "missing",
            vec![self.source.into(), key.into()],
            format!("Field required: {key}"),
            &input,
        ));
    }

    /// Returns all issues collected so far as an error.
    pub fn check(&mut self) -> Result<(), ApiError> {
        if self.issues.is_empty() {
            Ok(())
        } else {
            Err(ApiError::Invalid(std::mem::take(&mut self.issues)))
        }
    }

    /// Ends reading; as [`Fields::check`].
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.check()
    }
}

/// Returns the issue of a value that is not an integer within `range`.
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

/// Returns the issue of the integer `input` outside of `range`.
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
    fn all_wrong_fields_are_reported_together() {
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
