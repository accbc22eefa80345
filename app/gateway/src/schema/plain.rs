//! Spelling of derived schemas.

use serde_json::{Map, Value, json};

/// Rewrites a derived schema: alternatives are `anyOf`, a nullable plain type is a list of types,
/// a single word is a constant, and numbers have no format.
pub(crate) fn plain(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(map) => {
            map.values_mut().for_each(plain);
            plain_object(map);
        }
        _ => {}
    }
}

fn plain_object(map: &mut Map<String, Value>) {
    let is_number_format = ["int32", "int64", "float", "double"]
        .iter()
        .any(|format| map.get("format").is_some_and(|own| own == format));
    if is_number_format {
        map.shift_remove("format");
    }
    if map
        .get("propertyNames")
        .is_some_and(|names| names == &json!({ "type": "string" }))
    {
        map.shift_remove("propertyNames");
    }
    let is_false = map.get("items") == Some(&Value::Bool(false));
    if is_false && map.contains_key("prefixItems") {
        map.shift_remove("items");
    }
    let only = match map.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => Some(only.clone()),
        _ => None,
    };
    if let Some(only) = only {
        map.shift_remove("type");
        map.shift_remove("enum");
        map.insert("const".to_owned(), only);
    }
    if let Some(Value::Array(ways)) = map.shift_remove("oneOf") {
        any_of(map, ways);
    }
    described(map);
}

/// Adds the alternatives `ways`; a single one that may be null is merged.
fn any_of(map: &mut Map<String, Value>, mut ways: Vec<Value>) {
    let null = json!({ "type": "null" });
    if ways.len() == 2 && ways[1] == null {
        let Value::Object(mut only) = ways.swap_remove(0) else {
            return;
        };
        if let Some(description) = only.shift_remove("description") {
            map.entry("description").or_insert(description);
        }
        if let Some(Value::String(kind)) = only.get("type") {
            let kinds = json!([kind, "null"]);
            if let Some(Value::Array(words)) = only.get_mut("enum") {
                words.push(Value::Null);
            }
            only.insert("type".to_owned(), kinds);
            map.extend(only);
            return;
        }
        if let Some(Value::Array(inner)) = only.get_mut("anyOf") {
            inner.push(null);
            map.extend(only);
            return;
        }
        ways = vec![only.into(), null];
    }
    map.insert("anyOf".to_owned(), ways.into());
}

/// Merges a schema with the description and the default of the field that uses it, which the
/// derivation writes as a second schema of an object.
fn described(map: &mut Map<String, Value>) {
    let is_pair = map
        .get("allOf")
        .and_then(Value::as_array)
        .is_some_and(|parts| {
            parts.len() == 2
                && parts[1].get("type").is_some_and(|kind| kind == "object")
                && parts[1].get("properties").is_none()
        });
    if !is_pair {
        return;
    }
    let Some(Value::Array(mut parts)) = map.shift_remove("allOf") else {
        return;
    };
    let (Some(Value::Object(description)), Some(Value::Object(own))) = (parts.pop(), parts.pop())
    else {
        return;
    };
    map.extend(own);
    map.extend(description.into_iter().filter(|(key, _)| key != "type"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_schema_is_rewritten() {
        for (derived, expected) in [
            (
                json!({ "oneOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }] }),
                json!({ "type": ["string", "null"], "enum": ["a", "b", null] }),
            ),
            (
                json!({ "oneOf": [{ "$ref": "#/x", "description": "D." }, { "type": "null" }] }),
                json!({ "description": "D.", "anyOf": [{ "$ref": "#/x" }, { "type": "null" }] }),
            ),
            (
                json!({ "oneOf": [{ "oneOf": [{ "type": "string" }, { "type": "array" }] }, { "type": "null" }] }),
                json!({ "anyOf": [{ "type": "string" }, { "type": "array" }, { "type": "null" }] }),
            ),
            (
                json!({ "allOf": [{ "type": "string" }, { "type": "object", "description": "D." }] }),
                json!({ "type": "string", "description": "D." }),
            ),
            (
                json!({ "type": "string", "enum": ["*"] }),
                json!({ "const": "*" }),
            ),
            (
                json!({ "type": "integer", "format": "int64", "minimum": 1 }),
                json!({ "type": "integer", "minimum": 1 }),
            ),
        ] {
            let mut schema = derived.clone();
            plain(&mut schema);
            assert_eq!(schema, expected, "{derived}");
        }
    }
}
