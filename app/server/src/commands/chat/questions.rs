//! What a run asks a person at the terminal before it goes on.

use std::io::{self, Write};

use harness::client::Question;
use serde_json::{Map, Value};

use super::cards::plain;

/// Shows what is asked.
pub(super) fn show(question: &Question, out: &mut dyn Write) -> io::Result<()> {
    let Some(calls) = question.calls() else {
        write!(out, "? {}\n  answer: ", plain(&question.text()))?;
        return out.flush();
    };
    for call in calls {
        writeln!(
            out,
            "? {} {}",
            plain(call.name),
            plain(&call.arguments.to_string())
        )?;
        if let Some(reason) = call.reason {
            writeln!(out, "  {}", plain(reason))?;
        }
    }
    if let Some(error) = question.error() {
        writeln!(out, "  not understood: {}", plain(error))?;
    }
    write!(out, "  allow it? [y/N] ")?;
    out.flush()
}

/// The answer that a person's line is. An empty line rejects a call, as its question says; the agent reads any other, a decision as
/// JSON among them.
pub(super) fn read(line: &str, question: &Question) -> Value {
    let line = line.trim();
    match question.calls() {
        Some(_) if line.is_empty() => false.into(),
        Some(_) if line.starts_with(['{', '[']) => {
            serde_json::from_str(line).unwrap_or_else(|_not_json| line.into())
        }
        _ => line.into(),
    }
}

/// The answers that words are to all of these; JSON may have those of each by its id, or decisions on several calls in their order.
pub(super) fn read_all(words: &str, open: &[Question]) -> Value {
    let each = || {
        open.iter()
            .map(|question| (question.id.clone(), read(words, question)))
            .collect::<Map<_, _>>()
            .into()
    };
    match serde_json::from_str::<Value>(words) {
        Ok(Value::Object(map)) if open.iter().any(|question| map.contains_key(&question.id)) => {
            map.into()
        }
        Ok(list) if open.len() > 1 && (list.is_array() || list.get("decisions").is_some()) => list,
        _ => each(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_shown_with_what_it_would_do_and_nothing_in_it_speaks_to_the_terminal() {
        let call = json!({"name": "bash", "args": {"command": "rm \u{1b}[2J"}, "description": "it removes"});
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
    fn an_empty_line_rejects_and_any_other_is_sent_as_it_is() {
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
    fn one_answer_is_for_all_and_json_tells_them_apart() {
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
    fn a_question_asked_again_says_why() {
        let mut out = Vec::new();
        let value = json!({ "action_requests": [{ "name": "bash", "args": {} }], "error": "\"maybe\" is no decision" });
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
            "? bash {}\n  not understood: \"maybe\" is no decision\n  allow it? [y/N] "
        );
    }
}
