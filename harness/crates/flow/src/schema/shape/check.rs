//! Checks a value against a shape and collects every problem in one pass.

use serde_json::{Map, Number, Value};

use super::describe::{expectation, found};
use super::types::{Field, MAX_NAME, Record, Shape};
use crate::finding::push_segment;

/// Maximum characters of a node id.
const MAX_NODE_ID: usize = 128;
/// Integers up to here are exact in a floating-point number.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Problem at a place of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The value does not fit.
    Invalid,
    /// The field is not known; it is retained.
    Unknown,
}

/// Receives the problems: place as JSON pointer, kind and message.
type Report<'r> = dyn FnMut(&str, Problem, String) + 'r;

/// Checks `value` at the JSON pointer `path`. Removes null fields, which stand for absent ones,
/// and writes numbers as the shape says.
pub(crate) fn check(shape: &'static Shape, value: &mut Value, path: &str, report: &mut Report<'_>) {
    let mut checker = Checker {
        path: path.to_owned(),
        report,
    };
    checker.value(shape, value);
}

/// Checks the fields of an object, as [`check`] does.
pub(crate) fn check_fields(
    record: &'static Record,
    fields: &mut Map<String, Value>,
    path: &str,
    report: &mut Report<'_>,
) {
    let mut checker = Checker {
        path: path.to_owned(),
        report,
    };
    checker.record(record, fields);
}

struct Checker<'r, 'f> {
    path: String,
    report: &'r mut Report<'f>,
}

impl Checker<'_, '_> {
    fn value(&mut self, shape: &'static Shape, value: &mut Value) {
        normalize(shape, value);
        if !fits(shape, value) {
            let message = format!(
                "expected {}, found {}",
                expectation(shape),
                found(shape, value)
            );
            self.report(Problem::Invalid, message);
            return;
        }
        match (shape, value) {
            (Shape::List(item, _, _), Value::Array(items)) => {
                for (index, value) in items.iter_mut().enumerate() {
                    self.below(&index.to_string(), |checker| checker.value(item, value));
                }
            }
            (Shape::Map(shape), Value::Object(entries)) => {
                for (key, value) in entries {
                    self.below(key, |checker| checker.value(shape, value));
                }
            }
            (Shape::Record(record), Value::Object(fields)) => self.record(record, fields),
            _ => {}
        }
    }

    fn record(&mut self, record: &'static Record, fields: &mut Map<String, Value>) {
        for field in record.fields {
            match fields.get_mut(field.name) {
                Some(value) if !value.is_null() => {
                    self.below(field.name, |checker| checker.value(&field.shape, value));
                }
                null => {
                    if null.is_some() {
                        fields.shift_remove(field.name);
                    }
                    if field.required {
                        let message = format!("is missing; expected {}", expectation(&field.shape));
                        self.below(field.name, |checker| {
                            checker.report(Problem::Invalid, message);
                        });
                    }
                }
            }
        }
        for key in fields.keys() {
            if record.fields.iter().all(|field| field.name != key) {
                let message = unknown(key, record.fields);
                self.below(key, |checker| checker.report(Problem::Unknown, message));
            }
        }
    }

    fn report(&mut self, problem: Problem, message: String) {
        (self.report)(&self.path, problem, message);
    }

    /// Runs `step` with the path extended by one segment.
    fn below(&mut self, segment: &str, step: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        push_segment(&mut self.path, segment);
        step(self);
        self.path.truncate(length);
    }
}

fn unknown(key: &str, fields: &[Field]) -> String {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    match fields.iter().find(|field| plain(field.name) == plain(key)) {
        Some(field) => format!("is not known; did you mean `{}`?", field.name),
        None => "is not known; it is retained and has no effect".to_owned(),
    }
}

/// Writes integers that are written as floating-point numbers as integers, and versions as text.
fn normalize(shape: &Shape, value: &mut Value) {
    let Value::Number(number) = &*value else {
        return;
    };
    match shape {
        Shape::Integer(..) => {
            if let Some(integer) = integer(number) {
                *value = Value::from(integer);
            }
        }
        Shape::Version => {
            let text = match integer(number) {
                Some(integer) => format!("{integer}.0"),
                None => number.to_string(),
            };
            *value = Value::String(text);
        }
        _ => {}
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is a small integer without a fraction"
)]
fn integer(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        number
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..=MAX_EXACT).contains(number))
            .map(|number| number as u64)
    })
}

fn fits(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Any, _) | (Shape::Text, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => true,
        (Shape::Name | Shape::Version, Value::String(text)) => {
            !text.is_empty() && (text.len() <= MAX_NAME || text.chars().count() <= MAX_NAME)
        }
        (Shape::NodeId, Value::String(text)) => is_node_id(text),
        (Shape::OneOf(names), Value::String(text)) => names.contains(&text.as_str()),
        (Shape::Integer(min, max), Value::Number(number)) => {
            number.as_u64().is_some_and(|n| (*min..=*max).contains(&n))
        }
        (Shape::Number(min, max), Value::Number(number)) => {
            number.as_f64().is_some_and(|n| (*min..=*max).contains(&n))
        }
        (Shape::Positive, Value::Number(number)) => number.as_f64().is_some_and(|n| n > 0.0),
        (Shape::List(_, min, max), Value::Array(items)) => (*min..=*max).contains(&items.len()),
        (Shape::Map(_) | Shape::Record(_), Value::Object(_)) => true,
        _ => false,
    }
}

fn is_node_id(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MAX_NODE_ID
        && !text.contains(|c: char| c.is_control() || c == '|' || c == ':')
        && !["__start__", "__end__", "*"].contains(&text)
}
