//! What an item's value must hold: equality, comparisons, and both inside of objects and lists.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Conditions on the fields of a value; all of them must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(Map<String, Value>);

/// A condition asks for a comparison that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unsupported operator: {0}")]
pub struct UnknownOperator(pub String);

const OPERATORS: [&str; 6] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];

impl Filter {
    /// Reads conditions. An object with a key that begins with `$` is a set of comparisons; other objects and lists are compared
    /// part by part, where an object need not name every part.
    pub fn parse(conditions: Map<String, Value>) -> Result<Self, UnknownOperator> {
        conditions.values().try_for_each(check)?;
        Ok(Self(conditions))
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a value fits. What is absent is as null.
    pub fn matches(&self, value: &Map<String, Value>) -> bool {
        self.0
            .iter()
            .all(|(key, wanted)| fits(value.get(key).unwrap_or(&Value::Null), wanted))
    }
}

fn is_comparison(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| key.starts_with('$'))
}

fn check(wanted: &Value) -> Result<(), UnknownOperator> {
    match wanted {
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

fn fits(found: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(map) if is_comparison(map) => map
            .iter()
            .all(|(operator, operand)| compares(found, operator, operand)),
        Value::Object(map) => {
            let Value::Object(found) = found else {
                return false;
            };
            map.iter()
                .all(|(key, wanted)| fits(found.get(key).unwrap_or(&Value::Null), wanted))
        }
        Value::Array(wanted) => {
            let Value::Array(found) = found else {
                return false;
            };
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| fits(found, wanted))
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

/// Numbers are equal by value, however they are written.
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

/// Numbers go by size and texts by their characters; nothing else has an order.
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
    fn equality_knows_types_but_not_spellings_of_numbers() {
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
    fn comparisons_hold_for_numbers_and_texts_only() {
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
    fn objects_are_compared_by_the_parts_that_are_named() {
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
    fn an_operator_that_does_not_exist_is_refused_wherever_it_stands() {
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
