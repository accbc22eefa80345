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
        writeln!(out, "? {} {}", plain(call.name), plain(&call.arguments.to_string()))?;
        if let Some(reason) = call.reason {
            writeln!(out, "  {}", plain(reason))?;
        }
    }
    write!(out, "  allow it? [y/N] ")?;
    out.flush()
}

/// The answer that a person's line is. Whatever is not plainly a yes is a no.
pub(super) fn read(line: &str, question: &Question) -> Value {
    match question.calls() {
        Some(_) => matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes").into(),
        None => line.trim().into(),
    }
}

/// The answers that words are to all of these; JSON has those of each by its id.
pub(super) fn read_all(words: &str, open: &[Question]) -> Value {
    let each = || open.iter().map(|question| (question.id.clone(), read(words, question))).collect::<Map<_, _>>();
    serde_json::from_str::<Map<_, _>>(words).unwrap_or_else(|_words| each()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_shown_with_what_it_would_do_and_nothing_in_it_speaks_to_the_terminal() {
        let call = json!({"name": "bash", "args": {"command": "rm \u{1b}[2J"}, "description": "it removes"});
        let mut out = Vec::new();
        let question = Question { id: "q".to_owned(), value: json!({ "action_requests": [call] }) };
        show(&question, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("? bash {\"command\":\"rm ") && text.ends_with("\n  it removes\n  allow it? [y/N] "), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn only_a_yes_is_a_yes_and_words_stay_words() {
        let question = |value| Question { id: "q".to_owned(), value };
        for (line, yes) in [("y", true), (" YES ", true), ("", false), ("n", false), ("yes please", false)] {
            assert_eq!(read(line, &question(json!({ "action_requests": [] }))), json!(yes), "{line:?}");
        }
        assert_eq!(read(" red ", &question(json!({ "question": "Which?" }))), json!("red"));
    }

    #[test]
    fn one_answer_is_for_all_and_json_tells_them_apart() {
        let open = ["a", "b"].map(|id| Question { id: id.to_owned(), value: json!({ "action_requests": [] }) });
        assert_eq!(read_all("yes", &open), json!({ "a": true, "b": true }));
        assert_eq!(read_all("[1]", &open), json!({ "a": false, "b": false }));
        assert_eq!(read_all(r#"{"b": true}"#, &open), json!({ "b": true }));
    }
}
