//! Whether JSON contains other JSON, and what a store has to remember of an object to find it by that.

use serde_json::{Map, Value};

/// Whether `held` has every entry of `wanted`. Objects are compared entry by entry, every element of a wanted list must be in some
/// element of the held one, and plain values must be equal with their type: 1 is not `1.0`, and null is not an absence.
pub fn contains(held: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, wanted)| held.get(key).is_some_and(|held| value_contains(held, wanted)))
}

fn value_contains(held: &Value, wanted: &Value) -> bool {
    match (held, wanted) {
        (Value::Object(held), Value::Object(wanted)) => contains(held, wanted),
        (Value::Array(held), Value::Array(wanted)) => wanted.iter().all(|wanted| held.iter().any(|held| value_contains(held, wanted))),
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

/// Everything that is true of an object, without repetition. If one object contains another, its facts include the other's.
pub fn facts(object: &Map<String, Value>) -> Vec<Fact> {
    let mut facts = Vec::new();
    collect(object, &mut Vec::new(), &mut facts);
    facts.sort_unstable();
    facts.dedup();
    facts
}

/// Whether having the facts of `wanted` is the same as containing it. Not so where a list holds objects or lists: several
/// elements together may have facts that no single one has.
pub fn facts_decide(wanted: &Map<String, Value>) -> bool {
    wanted.values().all(|value| match value {
        Value::Object(inner) => facts_decide(inner),
        Value::Array(items) => items.iter().all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    })
}

fn collect(object: &Map<String, Value>, path: &mut Vec<Value>, facts: &mut Vec<Fact>) {
    for (key, value) in object {
        path.push(key.as_str().into());
        collect_value(value, path, facts);
        path.pop();
    }
}

fn collect_value(value: &Value, path: &mut Vec<Value>, facts: &mut Vec<Fact>) {
    let mut add = |value: String| facts.push(Fact { path: Value::from(path.clone()).to_string(), value });
    match value {
        Value::Object(inner) => {
            add("{}".to_owned());
            collect(inner, path, facts);
        }
        Value::Array(items) => {
            add("[]".to_owned());
            path.push(0.into());
            items.iter().for_each(|item| collect_value(item, path, facts));
            path.pop();
        }
        plain => add(plain.to_string()),
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
        for wanted in [json!({}), json!({"a": {}}), json!({"a": {"x": 1}}), json!({"a": {"y": [{"p": 1}, 1]}}), json!({"n": null})] {
            assert!(contains(&held, &map(wanted.clone())), "{wanted}");
        }
        for wanted in [json!({"b": null}), json!({"f": 1}), json!({"a": {"y": [{"p": 2}]}}), json!({"a": []}), json!({"a": {"x": "1"}})] {
            assert!(!contains(&held, &map(wanted.clone())), "{wanted}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![Just(json!(null)), (0..3_i32).prop_map(Value::from), "[ab]".prop_map(Value::from)];
        plain.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Map<String, Value>> {
        proptest::collection::btree_map("[ab]", json_value(), 0..3).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn what_contains_has_the_facts_and_mostly_the_other_way_round(held in object(), wanted in object()) {
            let known = facts(&held);
            let has_facts = facts(&wanted).iter().all(|fact| known.contains(fact));
            if contains(&held, &wanted) {
                prop_assert!(has_facts);
            } else if facts_decide(&wanted) {
                prop_assert!(!has_facts);
            }
        }
    }
}
