//! Filters on an item's value: equality and comparisons, also inside objects and lists.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Conditions on the fields of a value; all must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(Map<String, Value>);

/// A condition uses an unknown comparison operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unsupported operator: {0}")]
pub struct UnknownOperator(pub String);

const OPERATORS: [&str; 6] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];

impl Filter {
    /// Parses conditions. An object with a key that begins with `$` is a set of comparisons. Other
    /// objects and lists are compared element by element; an object in a condition need not name
    /// every field.
    pub fn parse(conditions: Map<String, Value>) -> Result<Self, UnknownOperator> {
        conditions.values().try_for_each(check)?;
        Ok(Self(conditions))
    }

    /// Reports whether the filter has no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether a value passes the filter. An absent field counts as null.
    pub fn matches(&self, value: &Map<String, Value>) -> bool {
        self.0
            .iter()
            .all(|(key, condition)| passes(value.get(key).unwrap_or(&Value::Null), condition))
    }
}

fn is_comparison(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| key.starts_with('$'))
}

fn check(condition: &Value) -> Result<(), UnknownOperator> {
    match condition {
        Value::Object(map) if is_comparison(map) => {
            match map.keys().find(|key| !OPERATORS.contains(&key.as_str())) {
                Some(unknown) => Err(UnknownOperator(unknown.chars().take(80).collect())),
                None => Ok(()),
            }
        }
        Value::Object(map) => map.values().try_for_each(check),
        Value::Array(items) => items.iter().try_for_each(check),
        _ => Ok(()),
    }
}

fn passes(found: &Value, condition: &Value) -> bool {
    match condition {
        Value::Object(map) if is_comparison(map) => map
            .iter()
            .all(|(operator, operand)| compares(found, operator, operand)),
        Value::Object(map) => {
            let Value::Object(found) = found else {
                return false;
            };
            map.iter()
                .all(|(key, condition)| passes(found.get(key).unwrap_or(&Value::Null), condition))
        }
        Value::Array(condition) => {
            let Value::Array(found) = found else {
                return false;
            };
            found.len() == condition.len()
                && found
                    .iter()
                    .zip(condition)
                    .all(|(found, condition)| passes(found, condition))
        }
        other => equal(found, other),
    }
}

fn compares(found: &Value, operator: &str, operand: &Value) -> bool {
    let order = || order(found, operand);
    match operator {
        "$eq" => equal(found, operand),
        "$ne" => !equal(found, operand),
        "$gt" => order() == Some(Ordering::Greater),
        "$gte" => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        "$lt" => order() == Some(Ordering::Less),
        "$lte" => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
        _ => false,
    }
}

/// Compares numbers by value, regardless of their notation.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => order(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => one == other,
    }
}

/// Orders numbers by value and strings by their characters; other values are not ordered.
fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            match (a.as_i64(), b.as_i64(), a.as_u64(), b.as_u64()) {
                (Some(a), Some(b), ..) => Some(a.cmp(&b)),
                (.., Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
            }
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(value: Value, filter: Value) -> bool {
        let map = |value: Value| value.as_object().cloned().unwrap();
        Filter::parse(map(filter)).unwrap().matches(&map(value))
    }

    #[test]
    fn equality_respects_types_but_not_number_notation() {
        assert!(matches(json!({"x": 1, "y": "a"}), json!({"x": 1.0})));
        assert!(matches(
            json!({"x": [1, {"k": null}]}),
            json!({"x": [1, {"k": null}]})
        ));
        assert!(matches(json!({}), json!({"absent": null})));
        for other in [json!("1"), json!(true), json!(null), json!([1])] {
            assert!(!matches(json!({"x": 1}), json!({"x": other})));
        }
        assert!(!matches(json!({"x": u64::MAX}), json!({"x": i64::MAX})));
    }

    #[test]
    fn comparisons_apply_to_numbers_and_strings_only() {
        let value = || json!({"n": 5, "t": "2026-01-02"});
        for (filter, expected) in [
            (json!({"n": {"$gt": 4, "$lte": 5.0}}), true),
            (json!({"n": {"$gt": 5}}), false),
            (json!({"n": {"$gte": 5, "$lt": 6}}), true),
            (json!({"n": {"$ne": 5}}), false),
            (json!({"absent": {"$ne": 5}}), true),
            (json!({"absent": {"$gt": 0}}), false),
            (json!({"n": {"$gt": "4"}}), false),
            (json!({"t": {"$gt": "2026-01-01"}}), true),
            (json!({"n": {"$eq": 5}}), true),
        ] {
            assert_eq!(matches(value(), filter.clone()), expected, "{filter}");
        }
    }

    #[test]
    fn objects_are_compared_by_named_fields() {
        let value = || json!({"a": {"b": {"c": 3}, "d": 4}, "l": [{"n": 1}, {"n": 2}]});
        assert!(matches(value(), json!({"a": {"b": {"c": {"$gt": 2}}}})));
        assert!(!matches(value(), json!({"a": {"b": {"c": 4}}})));
        assert!(matches(
            value(),
            json!({"l": [{"n": 1}, {"n": {"$lt": 3}}]})
        ));
        assert!(!matches(value(), json!({"l": [{"n": 1}]})));
    }

    #[test]
    fn unknown_operator_is_rejected_at_any_depth() {
        for filter in [
            json!({"a": {"$in": [1]}}),
            json!({"a": {"b": [{"$gt": 1, "$regex": "x"}]}}),
            json!({"a": {"$gt": 1, "b": 2}}),
        ] {
            assert!(
                Filter::parse(filter.as_object().cloned().unwrap()).is_err(),
                "{filter}"
            );
        }
    }
}
