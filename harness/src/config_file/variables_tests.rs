//! Tests of variable references and of missing variables.

use serde_json::{Value, json};

use super::*;

fn resolved(text: &str, variables: &[(&str, &str)]) -> (Value, UnresolvedReferences) {
    let mut root = Node::parse(text).unwrap();
    let environment = Environment::of("/", variables.iter().copied());
    let unset = resolve(&mut root, Path::new("config.yaml"), &environment);
    (root.to_json(), unset)
}

#[test]
fn references_are_resolved_at_any_depth() {
    let (value, unset) = resolved(
        "a: $X\nb: [$X, {c: $X, d: [$X]}]\nmodels:\n  - {name: m, api_key: $X, headers: {auth: $X}}\n",
        &[("X", "x")],
    );
    assert_eq!(
        value,
        json!({
            "a": "x", "b": ["x", {"c": "x", "d": ["x"]}],
            "models": [{"name": "m", "api_key": "x", "headers": {"auth": "x"}}],
        })
    );
    assert!(unset.problems.is_empty() && unset.warnings.is_empty());
}

#[test]
fn reference_must_be_the_whole_text() {
    let text = "a: pre-$X\nb: ' $X'\nc: '${X}'\nd: 5\ne: x$\n";
    let (value, unset) = resolved(text, &[("X", "x"), ("{X}", "braces are part of the name")]);
    assert_eq!(value["a"], "pre-$X");
    assert_eq!(value["b"], " $X");
    assert_eq!(value["c"], "braces are part of the name");
    assert_eq!(value["e"], "x$");
    assert!(unset.problems.is_empty());
}

#[test]
fn resolved_value_is_not_resolved_again() {
    let (value, _) = resolved("a: $X\n", &[("X", "$Y"), ("Y", "y")]);
    assert_eq!(value["a"], "$Y");
}

#[cfg(unix)]
#[test]
fn non_utf8_variable_is_always_an_error() {
    use std::os::unix::ffi::OsStringExt;
    let raw = [("MINE".into(), std::ffi::OsString::from_vec(vec![0xff]))];
    let environment = Environment::from_raw("/", raw).unwrap();
    for text in [
        "title: {max_words: $MINE}\n",
        "models:\n  - {name: m, use: openai, model: m, api_key: $MINE}\n",
    ] {
        let unset = resolve(
            &mut Node::parse(text).unwrap(),
            Path::new("config.yaml"),
            &environment,
        );
        let error = unset.problems.first().expect("a problem").to_string();
        assert!(
            error.contains("refers to the environment variable MINE, whose value is not UTF-8"),
            "{error}"
        );
    }
}

#[test]
fn empty_variable_counts_as_value() {
    let (value, unset) = resolved("a: $X\n", &[("X", "")]);
    assert_eq!(value["a"], "");
    assert!(unset.problems.is_empty());
}

#[test]
fn missing_variable_error_names_location_and_key() {
    let (_, unset) = resolved("title: {}\ndatabase:\n  postgres_url: $PG_URL\n", &[]);
    assert_eq!(
        unset.problems[0].to_string(),
        "config.yaml:3:17: `database.postgres_url` refers to the environment variable PG_URL, which is not set"
    );
}

#[test]
fn missing_variable_of_lazy_entry_is_a_warning() {
    let (value, unset) = resolved(
        "models:\n  - name: a\n    api_key: $KEY\n    headers: {auth: $AUTH, keep: 1}\n    __unresolved: forged\n\
         tools:\n  - {name: t, list: [$ITEM, 2]}\n",
        &[],
    );
    assert!(unset.problems.is_empty());
    assert_eq!(unset.warnings.len(), 3);
    assert_eq!(
        value,
        json!({
            "models": [{"name": "a", "headers": {"keep": 1}, "__unresolved": [
                {"key": "api_key", "variable": "KEY"}, {"key": "headers.auth", "variable": "AUTH"},
            ]}],
            "tools": [{"name": "t", "list": [null, 2], "__unresolved": [{"key": "list[0]", "variable": "ITEM"}]}],
        })
    );
}

#[test]
fn identity_keys_keep_unresolved_reference() {
    let (value, _) = resolved("models:\n  - {name: a, use: u, model: $MODEL}\n", &[]);
    assert_eq!(value["models"][0]["model"], "$MODEL");
    assert_eq!(value["models"][0]["__unresolved"][0]["variable"], "MODEL");
}
