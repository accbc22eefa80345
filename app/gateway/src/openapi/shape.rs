//! Rejection of nulls in bodies. A field may be null only if its schema allows it; a missing field
//! is not a null. All bodies of the platform's routes are checked here.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::COMPONENTS;
use crate::error::Issue;

/// All schemas by name. Tests parse them, so they are valid.
static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let read = |text: &&str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    COMPONENTS.iter().flat_map(read).collect()
});

/// Schema of a route's body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape(&'static str);

impl Shape {
    /// Returns the schema called `component`.
    pub(crate) const fn of(component: &'static str) -> Self {
        Self(component)
    }

    /// Returns the names of its fields.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'static str> {
        let properties = SCHEMAS
            .get(self.0)
            .and_then(|schema| schema.get("properties")?.as_object());
        properties
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
    }

    /// Returns an issue for every null that the schema does not allow. Alternatives (`anyOf`) are
    /// not checked.
    pub(crate) fn nulls(self, body: &Value) -> Vec<Issue> {
        let mut issues = Vec::new();
        if let Some(schema) = SCHEMAS.get(self.0) {
            collect(schema, body, &mut vec!["body".into()], &mut issues);
        }
        issues
    }
}

fn collect(schema: &Value, value: &Value, at: &mut Vec<Value>, issues: &mut Vec<Issue>) {
    let schema = resolved(schema);
    let mut enter = |schema: Option<&Value>, value: &Value, place: Value| {
        if let Some(schema) = schema {
            at.push(place);
            collect(schema, value, at, issues);
            at.pop();
        }
    };
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties");
            fields.iter().for_each(|(key, value)| {
                enter(
                    properties.and_then(|known| known.get(key)),
                    value,
                    key.as_str().into(),
                )
            });
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, item)| enter(schema.get("items"), item, n.into())),
        Value::Null if !takes_null(schema) => issues.push(Issue::new(
            "type",
            at.clone(),
            "Input should not be null",
            value,
        )),
        _ => {}
    }
}

fn takes_null(schema: &Value) -> bool {
    let schema = resolved(schema);
    if let Some(ways) = schema.get("anyOf").and_then(Value::as_array) {
        return ways.iter().any(takes_null);
    }
    match (schema.get("type"), schema.get("const")) {
        (Some(Value::Array(types)), _) => types.iter().any(|one| one == "null"),
        (Some(only), _) => only == "null",
        (None, only) => only.is_none_or(Value::is_null),
    }
}

fn resolved(schema: &Value) -> &Value {
    let named = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix("#/components/schemas/"));
    named.and_then(|name| SCHEMAS.get(name)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn locations(component: &'static str, body: Value) -> Vec<String> {
        Shape::of(component)
            .nulls(&body)
            .iter()
            .map(|issue| Value::from(issue.loc.clone()).to_string())
            .collect()
    }

    #[test]
    fn null_is_accepted_only_where_the_schema_allows_it() {
        let run = json!({ "assistant_id": "a", "input": null, "command": null, "checkpoint_id": null, "unknown": null });
        assert_eq!(locations("RunCreate", run.clone()), Vec::<String>::new());
        assert_eq!(
            locations(
                "RunCreate",
                json!({ "webhook": null, "metadata": { "free": null } })
            ),
            [r#"["body","webhook"]"#]
        );
        assert_eq!(
            locations("RunCreate", json!({ "config": { "tags": null } })),
            [r#"["body","config","tags"]"#]
        );
        assert_eq!(
            locations("RunBatch", json!([run, { "metadata": null }])),
            [r#"["body",1,"metadata"]"#]
        );
        assert_eq!(
            locations(
                "ThreadCreate",
                json!({ "supersteps": [{ "updates": [{ "values": null, "as_node": null }] }] })
            )
            .len(),
            1
        );
    }

    #[test]
    fn a_component_names_its_fields() {
        assert_eq!(
            Shape::of("VersionChange").fields().collect::<Vec<_>>(),
            ["version"]
        );
    }
}
