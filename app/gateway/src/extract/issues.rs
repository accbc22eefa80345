//! Issues of a body, in the order of its fields.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Issue};

/// Issues of a body. Checks may add them in any order; one response reports them all in the order
/// of the body's fields.
#[derive(Debug)]
pub struct Issues {
    /// Names of the fields in order.
    fields: &'static [String],
    list: Vec<Issue>,
}

impl Issues {
    /// Begins with the issues in `list`.
    pub(super) fn new(fields: &'static [String], list: Vec<Issue>) -> Self {
        Self { fields, list }
    }

    /// Adds an issue.
    pub fn push(&mut self, issue: Issue) {
        self.list.push(issue);
    }

    /// Adds the issues of an object that is a part of this body, at `place` within the body.
    pub fn nest(&mut self, inner: Self, place: &[Value]) {
        let fields = inner.fields;
        let mut list = inner.list;
        list.sort_by_key(|issue| rank(fields, issue));
        for mut issue in list {
            issue.loc.splice(1..1, place.iter().cloned());
            self.push(issue);
        }
    }

    /// Adds an issue for a list with more than `limit` elements.
    pub fn limit_items(&mut self, key: &str, count: usize, limit: usize) {
        if count > limit {
            let msg = format!("{key} should have at most {limit} items");
            self.refuse::<()>("too_long", key, msg, &count.into());
        }
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
        self.push(Issue::new(
            kind,
            vec!["body".into(), key.into()],
            msg,
            input,
        ));
        None
    }

    /// Reads a string, if the value is not null.
    pub fn text(&mut self, key: &str, value: Value) -> Option<String> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => self.refuse("string_type", key, "Input should be a valid string", &other),
        }
    }

    /// Reads an object, if the value is not null.
    pub fn object(&mut self, key: &str, value: Value) -> Option<Map<String, Value>> {
        match value {
            Value::Null => None,
            Value::Object(map) => Some(map),
            other => self.refuse(
                "dict_type",
                key,
                "Input should be a valid dictionary",
                &other,
            ),
        }
    }

    /// Reads a list of strings, if the value is not null.
    pub fn texts(&mut self, key: &str, value: &Value) -> Option<Vec<String>> {
        if value.is_null() {
            return None;
        }
        let texts = texts_of(value);
        if texts.is_none() {
            self.push(texts_issue(key, value));
        }
        texts.map(|texts| texts.into_iter().map(str::to_owned).collect())
    }

    /// Reads an integer within `range`, if the value is not null.
    pub fn number(&mut self, key: &str, value: &Value, range: RangeInclusive<u64>) -> Option<u64> {
        if value.is_null() {
            return None;
        }
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            self.push(number_issue(vec!["body".into(), key.into()], value, range));
        }
        number
    }

    /// Reads a string that must be in `words`, if the value is not null.
    pub fn word<T: Copy>(&mut self, key: &str, value: &Value, words: &[(&str, T)]) -> Option<T> {
        if value.is_null() {
            return None;
        }
        let known = value
            .as_str()
            .and_then(|text| words.iter().find(|(word, _)| *word == text));
        if known.is_none() {
            self.push(word_issue(key, value, words.iter().map(|(word, _)| *word)));
        }
        known.map(|(_, meaning)| *meaning)
    }

    /// Returns all issues collected so far as an error, after those in `first`.
    pub fn check_after(&mut self, mut first: Vec<Issue>) -> Result<(), ApiError> {
        let mut issues = std::mem::take(&mut self.list);
        issues.sort_by_key(|issue| rank(self.fields, issue));
        first.append(&mut issues);
        if first.is_empty() {
            Ok(())
        } else {
            Err(ApiError::Invalid(first))
        }
    }

    /// Returns all issues collected so far as an error.
    pub fn check(&mut self) -> Result<(), ApiError> {
        self.check_after(Vec::new())
    }

    /// Ends the checks; as [`Issues::check`].
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.check()
    }
}

/// Position of an issue's field; the last one for an unknown field. A location such as
/// `command.goto` is a part of its field.
fn rank(fields: &[String], issue: &Issue) -> usize {
    let name = issue.loc.get(1).and_then(Value::as_str);
    name.and_then(|name| name.split('.').next())
        .and_then(|name| fields.iter().position(|known| known == name))
        .unwrap_or(usize::MAX)
}

/// Returns the issue of a field that is absent from the body `map`.
pub(crate) fn missing_issue(key: &str, map: &Map<String, Value>) -> Issue {
    Issue::new(
        "missing",
        vec!["body".into(), key.into()],
        format!("Field required: {key}"),
        &Value::Object(map.clone()),
    )
}

/// Returns the elements of a list of strings.
pub(super) fn texts_of(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Returns the issue of a value that is not a list of strings.
pub(super) fn texts_issue(key: &str, value: &Value) -> Issue {
    let loc = vec!["body".into(), key.into()];
    Issue::new(
        "list_type",
        loc,
        "Input should be a valid list of strings",
        value,
    )
}

/// Returns the issue of a value that is none of `words`.
pub(super) fn word_issue<'a>(
    key: &str,
    value: &Value,
    words: impl Iterator<Item = &'a str>,
) -> Issue {
    let expected = words
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(" or ");
    let loc = vec!["body".into(), key.into()];
    Issue::new(
        "literal_error",
        loc,
        format!("Input should be {expected}"),
        value,
    )
    .ctx(json!({ "expected": expected }))
}

/// Returns the issue of a value that is not an integer within `range`.
pub(super) fn number_issue(loc: Vec<Value>, value: &Value, range: RangeInclusive<u64>) -> Issue {
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
