//! JSON containment, and the index entries by which a store finds objects that contain a pattern.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Maximum length of a path in bytes; longer paths are replaced by a digest.
const MAX_PATH_LENGTH: usize = 254;
/// UUID namespace of these digests.
const DIGESTS: Uuid = Uuid::from_u128(0x2f0a_93d4_6d3e_4b0c_8a6b_7e1f_0c55_91ab);

/// Reports whether `value` contains every entry of `pattern`. Objects are compared entry by entry,
/// every element of a list in the pattern must be contained in some element of the list in the
/// value, and scalars must be equal including their type: 1 is not `1.0`, and null does not match
/// an absent key.
pub fn contains(value: &Map<String, Value>, pattern: &Map<String, Value>) -> bool {
    pattern.iter().all(|(key, pattern)| {
        value
            .get(key)
            .is_some_and(|value| value_contains(value, pattern))
    })
}

fn value_contains(value: &Value, pattern: &Value) -> bool {
    match (value, pattern) {
        (Value::Object(value), Value::Object(pattern)) => contains(value, pattern),
        (Value::Array(value), Value::Array(pattern)) => pattern
            .iter()
            .all(|pattern| value.iter().any(|value| value_contains(value, pattern))),
        (value, pattern) => value == pattern,
    }
}

/// Value at one path of an object, as an index entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fact {
    /// Keys from the root, as a JSON list; 0 stands for any element of a list.
    pub path: String,
    /// Scalar as JSON text; `{}` or `[]` for an object or a list.
    pub value: String,
}

/// Returns the distinct facts of an object, at most `limit`. If one object contains another, its
/// facts include all facts of the other.
pub fn facts(object: &Map<String, Value>, limit: usize) -> Vec<Fact> {
    let mut facts = BTreeSet::new();
    collect(object, "", limit, &mut facts);
    facts.into_iter().collect()
}

/// Reports whether comparing facts is equivalent to containment for this pattern. It is not if a
/// list holds objects or lists: several elements together may provide facts that no single element
/// has.
pub fn facts_are_sufficient(pattern: &Map<String, Value>) -> bool {
    pattern.values().all(|value| match value {
        Value::Object(inner) => facts_are_sufficient(inner),
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    })
}

fn collect(object: &Map<String, Value>, path: &str, limit: usize, facts: &mut BTreeSet<Fact>) {
    for (key, value) in object {
        if facts.len() >= limit {
            return;
        }
        collect_value(
            value,
            &below(path, &Value::from(key.as_str()).to_string()),
            limit,
            facts,
        );
    }
}

fn collect_value(value: &Value, path: &str, limit: usize, facts: &mut BTreeSet<Fact>) {
    if facts.len() >= limit {
        return;
    }
    let mut add = |value: String| {
        facts.insert(Fact {
            path: format!("[{path}]"),
            value,
        })
    };
    match value {
        Value::Object(inner) => {
            add("{}".to_owned());
            collect(inner, path, limit, facts);
        }
        Value::Array(items) => {
            add("[]".to_owned());
            let inner = below(path, "0");
            items
                .iter()
                .for_each(|item| collect_value(item, &inner, limit, facts));
        }
        plain => {
            add(plain.to_string());
        }
    }
}

/// Appends a step to a path. A long path becomes a digest, so the size of a fact does not depend on
/// its depth.
fn below(path: &str, step: &str) -> String {
    let text = if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path},{step}")
    };
    if text.len() <= MAX_PATH_LENGTH {
        text
    } else {
        format!("\"#{}\"", Uuid::new_v5(&DIGESTS, text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn containment_is_recursive_and_respects_types() {
        let value = map(json!({"a": {"x": 1, "y": [1, {"p": 1, "q": 2}]}, "n": null, "f": 1.0}));
        for pattern in [
            json!({}),
            json!({"a": {}}),
            json!({"a": {"x": 1}}),
            json!({"a": {"y": [{"p": 1}, 1]}}),
            json!({"n": null}),
        ] {
            assert!(contains(&value, &map(pattern.clone())), "{pattern}");
        }
        for pattern in [
            json!({"b": null}),
            json!({"f": 1}),
            json!({"a": {"y": [{"p": 2}]}}),
            json!({"a": []}),
            json!({"a": {"x": "1"}}),
        ] {
            assert!(!contains(&value, &map(pattern.clone())), "{pattern}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(json!(null)),
            (0..3_i32).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        plain.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Map<String, Value>> {
        proptest::collection::btree_map("[ab]", json_value(), 0..3)
            .prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn containment_implies_facts_and_sufficient_facts_imply_it(value in object(), pattern in object()) {
            let known = facts(&value, usize::MAX);
            let has_facts = facts(&pattern, usize::MAX).iter().all(|fact| known.contains(fact));
            if contains(&value, &pattern) {
                prop_assert!(has_facts);
            } else if facts_are_sufficient(&pattern) {
                prop_assert!(!has_facts);
            }
        }
    }
}
