//! Tests of questions that ask for several values.

use serde_json::{Map, Value, json};

use super::card;
use super::form::fields_of;
use crate::messages::ToolCall;
use crate::tools::builtins::ASK_CLARIFICATION;

fn fields(value: Value) -> Value {
    json!(fields_of(Some(&value)))
}

#[test]
fn form_has_version_two_and_replaces_options() {
    let args = json!({
        "question": "How shall I deploy?", "clarification_type": "missing_info", "options": ["no"],
        "fields": [
            { "name": "size", "label": "Size", "type": "select", "options": ["small", "large"], "required": true },
            { "name": "note", "type": "textarea", "placeholder": "Anything else" },
            { "name": "agree", "label": "I agree", "type": "checkbox", "required": "true" },
        ],
    });
    let Value::Object(args) = args else {
        unreachable!("an object")
    };
    let output = card(&ToolCall::new("c", ASK_CLARIFICATION, args), &[]);
    let request = &output.artifact["human_input"];
    assert_eq!(
        (&request["version"], &request["input_mode"]),
        (&json!(2), &json!("form"))
    );
    assert_eq!(request["options"], Value::Null);
    assert_eq!(
        request["fields"],
        json!([
            { "name": "size", "label": "Size", "type": "select", "required": true, "options": [
                { "id": "size-option-1", "label": "small", "value": "small" },
                { "id": "size-option-2", "label": "large", "value": "large" },
            ]},
            { "name": "note", "label": "note", "type": "textarea", "required": false, "placeholder": "Anything else" },
            { "name": "agree", "label": "I agree", "type": "checkbox", "required": true },
        ])
    );
    assert_eq!(
        output.content.text(),
        "❓ How shall I deploy?\n\n  - Size (required): small, large\n  - note\n  - I agree (required): yes, no"
    );
}

#[test]
fn unusable_field_makes_the_question_plain_text() {
    let long = "x".repeat(201);
    let many: Vec<Value> = (0..17)
        .map(|n| json!({ "name": format!("f{n}") }))
        .collect();
    let heavy: Vec<Value> = (0..16)
        .map(|n| {
            let options: Vec<String> = (0..24)
                .map(|at| format!("{at:>03}{}", "o".repeat(150)))
                .collect();
            json!({ "name": format!("f{n}"), "type": "select", "options": options })
        })
        .collect();
    for broken in [
        json!([]),
        json!("no list"),
        json!({ "name": "a" }),
        json!(["a"]),
        json!([{ "label": "no name" }]),
        json!([{ "name": " " }]),
        json!([{ "name": "constructor" }]),
        json!([{ "name": "a" }, { "name": "a " }]),
        json!([{ "name": long }]),
        json!([{ "name": "a", "label": long }]),
        json!([{ "name": "a", "placeholder": long }]),
        json!([{ "name": "a", "type": "select", "options": [long] }]),
        Value::Array(many),
        Value::Array(heavy),
    ] {
        assert_eq!(fields(broken.clone()), Value::Null, "{broken}");
    }
    let args = Map::from_iter([
        ("question".to_owned(), json!("Which?")),
        ("fields".to_owned(), json!([{ "name": "valueOf" }])),
        ("options".to_owned(), json!(["a"])),
    ]);
    let output = card(&ToolCall::new("c", ASK_CLARIFICATION, args), &[]);
    assert_eq!(
        output.artifact["human_input"]["input_mode"],
        "choice_with_other"
    );
}

#[test]
fn unknown_kinds_and_choices_without_options_are_text_fields() {
    let text =
        |name: &str| json!({ "name": name, "label": name, "type": "text", "required": false });
    let sent = json!([
        { "name": "a", "type": "color" },
        { "name": "b", "type": ["text"] },
        { "name": "c", "type": "multi_select", "options": [] },
        { "name": "d", "options": ["ignored"], "required": 0 },
    ]);
    let expected = json!([text("a"), text("b"), text("c"), text("d")]);
    assert_eq!(fields(sent.clone()), expected);
    assert_eq!(fields(json!(sent.to_string())), expected);
}
