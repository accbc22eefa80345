//! Tests of the checker of shapes.

use serde_json::{Value, json};

use super::{Field, Problem, Record, Shape, check, optional, record_schema, required};

static POINT: Record = Record {
    name: "Point",
    fields: &FIELDS,
};
static FIELDS: [Field; 3] = [
    required("x", Shape::Integer(1, 9), "X."),
    optional("kind", Shape::OneOf(&["a", "b"]), "Kind."),
    optional("tags", Shape::List(&Shape::Name, 0, 2), "Tags."),
];
static SHAPE: Shape = Shape::Record(&POINT);

fn problems(value: &mut Value) -> Vec<(String, Problem, String)> {
    let mut problems = Vec::new();
    check(&SHAPE, value, "/p", &mut |path, problem, message| {
        problems.push((path.to_owned(), problem, message));
    });
    problems
}

#[test]
fn all_problems_are_reported_with_their_places() {
    let found = problems(&mut json!({"kind": "c", "tags": ["", 1], "a/b~": 1}));
    let places: Vec<_> = found
        .iter()
        .map(|(path, kind, _)| (path.as_str(), *kind))
        .collect();
    assert_eq!(
        places,
        [
            ("/p/x", Problem::Invalid),
            ("/p/kind", Problem::Invalid),
            ("/p/tags/0", Problem::Invalid),
            ("/p/tags/1", Problem::Invalid),
            ("/p/a~1b~0", Problem::Unknown),
        ]
    );
    assert_eq!(found[0].2, "is missing; expected an integer from 1 to 9");
    assert_eq!(found[1].2, "expected one of a, b, found \"c\"");
}

#[test]
fn null_fields_count_as_absent() {
    let mut value = json!({"x": 3.0, "kind": null, "other": null});
    assert_eq!(problems(&mut value).len(), 1, "the unknown field");
    assert_eq!(value, json!({"x": 3, "other": null}));
}

#[test]
fn lists_over_their_limit_are_not_examined_further() {
    let found = problems(&mut json!({"x": 1, "tags": ["", "", ""]}));
    assert_eq!(found.len(), 1);
    assert!(found[0].2.contains("at most 2 items"), "{}", found[0].2);
}

#[test]
fn unknown_fields_name_a_similar_field() {
    let found = problems(&mut json!({"x": 1, "KIND_": "a"}));
    assert!(found[0].2.contains("did you mean `kind`"), "{}", found[0].2);
}

#[test]
fn json_schema_states_the_same_rules() {
    let schema = record_schema(&POINT);
    assert_eq!(schema["required"], json!(["x"]));
    assert_eq!(schema["properties"]["x"]["maximum"], 9);
    assert_eq!(schema["properties"]["tags"]["items"]["minLength"], 1);
    assert_eq!(schema["properties"]["kind"]["description"], "Kind.");
}
