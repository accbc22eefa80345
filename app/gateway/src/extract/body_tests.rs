//! Bodies are checked by the rules of their types.

use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::*;
use crate::requests::bodies::{
    PruneStrategy, RunCreate, ThreadCreate, ThreadRunCreate, VersionChange,
};

/// A body with a field of each kind.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct Sample {
    #[serde(default)]
    #[schema(required = true)]
    text: String,
    #[schema(nullable = false, minimum = 1, maximum = 10)]
    number: Option<u64>,
    #[schema(inline, nullable = false)]
    word: Option<PruneStrategy>,
    #[schema(nullable = false)]
    list: Option<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Object)]
    object: Map<String, Value>,
    #[schema(nullable = false)]
    flag: Option<bool>,
    integer: Option<i64>,
}

request_body!(Sample, platform_only: ["flag"]);

fn sample(body: Value, dialect: Dialect) -> (Sample, Vec<Issue>) {
    let Value::Object(map) = body else {
        panic!("an object")
    };
    let (value, issues) = Body::<Sample>::new(map, dialect).parts();
    match issues.finish() {
        Ok(()) => (value, Vec::new()),
        Err(ApiError::Invalid(issues)) => (value, issues),
        Err(other) => panic!("{other}"),
    }
}

fn kinds(issues: &[Issue]) -> Vec<&str> {
    issues.iter().map(|issue| issue.kind).collect()
}

#[test]
fn null_is_absent_and_unknown_keys_are_ignored() {
    let body = json!({ "text": "a", "number": null, "object": null, "zzz": [1] });
    let (value, issues) = sample(body, Dialect::Platform);
    assert_eq!((issues, value.text.as_str()), (Vec::new(), "a"));
    assert_eq!((value.number, value.object.len()), (None, 0));
}

#[test]
fn valid_fields_are_decoded() {
    let body = json!({
        "text": "a", "number": 3, "word": "keep_latest", "list": ["b"], "object": { "c": 1 }, "flag": true, "integer": -1,
    });
    let (value, issues) = sample(body.clone(), Dialect::Platform);
    assert_eq!(issues, []);
    assert_eq!(
        (value.number, value.flag, value.integer),
        (Some(3), Some(true), Some(-1))
    );
    assert_eq!(
        (value.word.map(|word| word.0), value.list),
        (Some(true), Some(vec!["b".to_owned()]))
    );
    assert_eq!(sample(body, Dialect::DeerFlow).0.flag, None);
}

#[test]
fn all_wrong_fields_are_reported_in_order_of_fields() {
    let body = json!({
        "integer": 1.5, "object": "y", "list": [1], "word": "x", "number": 0, "flag": "z",
    });
    let (_, issues) = sample(body.clone(), Dialect::Platform);
    assert_eq!(
        kinds(&issues),
        [
            "missing",
            "greater_than_equal",
            "literal_error",
            "list_type",
            "dict_type",
            "bool_type",
            "int_type",
        ]
    );
    assert_eq!(
        (&issues[0].msg, &issues[0].input),
        (&"Field required: text".to_owned(), &body)
    );
    assert_eq!(issues[1].ctx, Some(json!({ "ge": 1 })));
    assert_eq!(issues[2].msg, "Input should be 'delete' or 'keep_latest'");
    let of_deerflow = sample(body, Dialect::DeerFlow).1;
    assert!(!kinds(&of_deerflow).contains(&"bool_type"));
}

#[test]
fn later_checks_are_reported_in_order_of_fields() {
    let map = Map::from_iter([("object".to_owned(), json!(1))]);
    let (_, mut issues) = Body::<Sample>::new(map, Dialect::Platform).parts();
    issues.refuse::<()>("value_error", "number", "wrong", &Value::Null);
    let Err(ApiError::Invalid(issues)) = issues.finish() else {
        panic!("expected issues")
    };
    assert_eq!(kinds(&issues), ["missing", "value_error", "dict_type"]);
}

fn null_locations<T: RequestBody>(body: &Value) -> Vec<String> {
    T::layout()
        .nulls(body, vec!["body".into()])
        .iter()
        .map(|issue| Value::from(issue.loc.clone()).to_string())
        .collect()
}

#[test]
fn null_is_accepted_only_where_the_schema_allows_it() {
    let run = json!({ "assistant_id": "a", "input": null, "command": null, "checkpoint_id": null, "unknown": null });
    assert_eq!(
        null_locations::<ThreadRunCreate>(&run),
        Vec::<String>::new()
    );
    assert_eq!(
        null_locations::<ThreadRunCreate>(
            &json!({ "webhook": null, "metadata": { "free": null } })
        ),
        [r#"["body","webhook"]"#]
    );
    assert_eq!(
        null_locations::<RunCreate>(&json!({ "config": { "tags": null } })),
        [r#"["body","config","tags"]"#]
    );
    let steps = json!({ "supersteps": [{ "updates": [{ "values": null, "as_node": null }] }] });
    assert_eq!(null_locations::<ThreadCreate>(&steps).len(), 1);
}

#[test]
fn reported_nulls_are_limited() {
    let list = vec![Value::Null; 10_000];
    assert_eq!(
        null_locations::<Sample>(&json!({ "list": list })).len(),
        100
    );
}

#[test]
fn layout_names_the_fields() {
    assert_eq!(VersionChange::layout().names(), ["version"]);
}
