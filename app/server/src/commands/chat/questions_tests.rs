//! Tests of displayed interrupts, and of the answers that users enter.

use serde_json::json;

use super::*;

#[test]
fn call_is_shown_with_reason_and_no_control_sequences() {
    let call =
        json!({"name": "bash", "args": {"command": "rm \u{1b}[2J"}, "description": "it removes"});
    let mut out = Vec::new();
    let question = Question {
        id: "q".to_owned(),
        value: json!({ "action_requests": [call] }),
    };
    show(&question, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("? bash {\"command\":\"rm ")
            && text.ends_with("\n  it removes\n  allow it? [y/N] "),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn empty_line_rejects_and_other_text_is_passed_on() {
    let question = |value| Question {
        id: "q".to_owned(),
        value,
    };
    let edit = json!({"type": "edit", "edited_action": {"name": "bash", "args": {}}});
    for (line, answer) in [
        ("y", json!("y")),
        (" YES ", json!("YES")),
        ("", json!(false)),
        ("n", json!("n")),
        ("yes please", json!("yes please")),
        ("{oops", json!("{oops")),
        (&edit.to_string(), edit.clone()),
    ] {
        assert_eq!(
            read(line, &question(json!({ "action_requests": [] }))),
            answer,
            "{line:?}"
        );
    }
    assert_eq!(
        read(" red ", &question(json!({ "question": "Which?" }))),
        json!("red")
    );
    assert_eq!(
        read("{}", &question(json!({ "question": "Which?" }))),
        json!("{}")
    );
}

#[test]
fn plain_answer_covers_all_and_json_separates_them() {
    let open = ["a", "b"].map(|id| Question {
        id: id.to_owned(),
        value: json!({ "action_requests": [] }),
    });
    assert_eq!(read_all("yes", &open), json!({ "a": "yes", "b": "yes" }));
    assert_eq!(read_all("", &open), json!({ "a": false, "b": false }));
    assert_eq!(read_all(r#"{"b": true}"#, &open), json!({ "b": true }));
    let approve = json!({ "type": "approve" });
    assert_eq!(
        read_all(&approve.to_string(), &open),
        json!({ "a": approve, "b": approve })
    );
    let both = json!({ "decisions": [approve, approve] });
    assert_eq!(read_all(&both.to_string(), &open), both);
    let one = json!({ "decisions": [approve] });
    assert_eq!(read_all(&one.to_string(), &open[..1]), json!({ "a": one }));
}

#[test]
fn repeated_question_shows_error() {
    let mut out = Vec::new();
    let value = json!({ "action_requests": [{ "name": "bash", "args": {} }], "error": "\"maybe\" is not a decision" });
    show(
        &Question {
            id: "q".to_owned(),
            value,
        },
        &mut out,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "? bash {}\n  not understood: \"maybe\" is not a decision\n  allow it? [y/N] "
    );
}
