//! Whether JSON contains other JSON, and what a store has to remember of an object to find it by that.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Longer paths are told by a digest.
const LONGEST_PATH: usize = 254;
/// The namespace of such digests.
const DIGESTS: Uuid = Uuid::from_u128(0x2f0a_93d4_6d3e_4b0c_8a6b_7e1f_0c55_91ab);

/// Whether `held` has every entry of `wanted`. Objects are compared entry by entry, every element of a wanted list must be in some
/// element of the held one, and plain values must be equal with their type: 1 is not `1.0`, and null is not an absence.
pub fn contains(held: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, wanted)| {
        held.get(key)
            .is_some_and(|held| value_contains(held, wanted))
    })
}

fn value_contains(held: &Value, wanted: &Value) -> bool {
    match (held, wanted) {
        (Value::Object(held), Value::Object(wanted)) => contains(held, wanted),
        (Value::Array(held), Value::Array(wanted)) => wanted
            .iter()
            .all(|wanted| held.iter().any(|held| value_contains(held, wanted))),
        (held, wanted) => held == wanted,
    }
}

/// Something that is true of an object: what stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fact {
    /// Keys from the outside in, as a JSON list; 0 stands for any element of a list.
    pub path: String,
    /// A plain value as JSON text, `{}` or `[]` for an object or a list.
    pub value: String,
}

/// What is true of an object, without repetition: everything, or the first `most` facts. If one object contains another, all facts
/// of the first include all of the other's.
pub fn facts(object: &Map<String, Value>, most: usize) -> Vec<Fact> {
    let mut facts = BTreeSet::new();
    collect(object, "", most, &mut facts);
    facts.into_iter().collect()
}

/// Whether having the facts of `wanted` is the same as containing it. Not so where a list holds objects or lists: several
/// elements together may have facts that no single one has.
pub fn facts_decide(wanted: &Map<String, Value>) -> bool {
    wanted.values().all(|value| match value {
        Value::Object(inner) => facts_decide(inner),
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    })
}

fn collect(object: &Map<String, Value>, path: &str, most: usize, facts: &mut BTreeSet<Fact>) {
    for (key, value) in object {
        if facts.len() >= most {
            return;
        }
        collect_value(
            value,
            &below(path, &Value::from(key.as_str()).to_string()),
            most,
            facts,
        );
    }
}

fn collect_value(value: &Value, path: &str, most: usize, facts: &mut BTreeSet<Fact>) {
    if facts.len() >= most {
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
            collect(inner, path, most, facts);
        }
        Value::Array(items) => {
            add("[]".to_owned());
            let inner = below(path, "0");
            items
                .iter()
                .for_each(|item| collect_value(item, &inner, most, facts));
        }
        plain => {
            add(plain.to_string());
        }
    }
}

/// The path one step further in. A long one is told by its digest, so that a fact costs no more for standing deep.
fn below(path: &str, step: &str) -> String {
    let text = if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path},{step}")
    };
    if text.len() <= LONGEST_PATH {
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
    fn containment_goes_into_objects_and_lists_and_knows_types() {
        let held = map(json!({"a": {"x": 1, "y": [1, {"p": 1, "q": 2}]}, "n": null, "f": 1.0}));
        for wanted in [
            json!({}),
            json!({"a": {}}),
            json!({"a": {"x": 1}}),
            json!({"a": {"y": [{"p": 1}, 1]}}),
            json!({"n": null}),
        ] {
            assert!(contains(&held, &map(wanted.clone())), "{wanted}");
        }
        for wanted in [
            json!({"b": null}),
            json!({"f": 1}),
            json!({"a": {"y": [{"p": 2}]}}),
            json!({"a": []}),
            json!({"a": {"x": "1"}}),
        ] {
            assert!(!contains(&held, &map(wanted.clone())), "{wanted}");
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
        fn what_contains_has_the_facts_and_mostly_the_other_way_round(held in object(), wanted in object()) {
            let known = facts(&held, usize::MAX);
            let has_facts = facts(&wanted, usize::MAX).iter().all(|fact| known.contains(fact));
            if contains(&held, &wanted) {
                prop_assert!(has_facts);
            } else if facts_decide(&wanted) {
                prop_assert!(!has_facts);
            }
        }
    }
}
