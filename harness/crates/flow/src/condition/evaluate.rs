//! Value of an expression in a scope. Never fails: what has no value is null.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::expression::{Comparison, Expression, Segment};
use super::scope::Scope;

static NULL: Value = Value::Null;

/// Returns the value of an expression. The parser bounds the depth of the recursion.
pub(super) fn evaluate<'a>(expression: &'a Expression, scope: &'a dyn Scope) -> Cow<'a, Value> {
    let truth = |expression| is_truthy(&evaluate(expression, scope));
    let result = match expression {
        Expression::Literal(value) => return Cow::Borrowed(value),
        Expression::Path(root, segments) => {
            return scope
                .value(root)
                .map_or(Cow::Borrowed(&NULL), |value| follow(value, segments));
        }
        Expression::Len(argument) => return Cow::Owned(len(&evaluate(argument, scope)).into()),
        Expression::Any(parts) => parts.iter().any(truth),
        Expression::All(parts) => parts.iter().all(truth),
        Expression::Not(part) => !truth(part),
        Expression::Exists(argument) => !evaluate(argument, scope).is_null(),
        Expression::Contains(whole, part) => {
            contains(&evaluate(whole, scope), &evaluate(part, scope))
        }
        Expression::Compare(comparison, left, right) => {
            compare(*comparison, &evaluate(left, scope), &evaluate(right, scope))
        }
    };
    Cow::Owned(Value::Bool(result))
}

/// Returns `false` for null, false, 0 and empty texts, lists and objects.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn follow<'a>(value: Cow<'a, Value>, segments: &[Segment]) -> Cow<'a, Value> {
    fn walk<'v>(value: &'v Value, segments: &[Segment]) -> &'v Value {
        segments
            .iter()
            .try_fold(value, |value, segment| match value {
                Value::Object(fields) => fields.get(&segment.key),
                Value::Array(items) => segment.index.and_then(|index| items.get(index)),
                _ => None,
            })
            .unwrap_or(&NULL)
    }
    match value {
        value if segments.is_empty() => value,
        Cow::Borrowed(value) => Cow::Borrowed(walk(value, segments)),
        Cow::Owned(value) => Cow::Owned(walk(&value, segments).clone()),
    }
}

fn len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(items), part) => items.iter().any(|item| equal(item, part)),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        _ => false,
    }
}

fn compare(comparison: Comparison, left: &Value, right: &Value) -> bool {
    match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::NotEqual => !equal(left, right),
        Comparison::Less => order(left, right) == Some(Ordering::Less),
        Comparison::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
        Comparison::Greater => order(left, right) == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
    }
}

/// Compares values; numbers by their value, so that 1 equals 1.0.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            order_numbers(left, right) == Some(Ordering::Equal)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| equal(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, a)| right.get(key).is_some_and(|b| equal(a, b)))
        }
        (left, right) => left == right,
    }
}

/// Orders two numbers or two texts; other values have no order.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn order_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return Some(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) {
        return Some(left.cmp(&right));
    }
    left.as_f64()?.partial_cmp(&right.as_f64()?)
}
