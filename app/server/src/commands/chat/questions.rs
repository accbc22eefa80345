//! What a run asks a person at the terminal before it goes on.

use std::io::{self, Write};

use harness::client::Question;
use serde_json::Value;

use super::cards::plain;

/// Shows what is asked; true when a yes or a no is wanted, and not words.
pub(super) fn show(question: &Question, out: &mut dyn Write) -> io::Result<bool> {
    let Some(calls) = question.value["action_requests"].as_array() else {
        let text =
            question.value["question"].as_str().or(question.value.as_str()).map_or_else(|| question.value.to_string(), str::to_owned);
        write!(out, "? {}\n  answer: ", plain(&text))?;
        out.flush()?;
        return Ok(false);
    };
    for call in calls {
        writeln!(out, "? {} {}", plain(call["name"].as_str().unwrap_or_default()), plain(&call["args"].to_string()))?;
        if let Some(reason) = call["description"].as_str() {
            writeln!(out, "  {}", plain(reason))?;
        }
    }
    write!(out, "  allow it? [y/N] ")?;
    out.flush()?;
    Ok(true)
}

/// The answer that a line is. Whatever is not plainly a yes is a no.
pub(super) fn read(line: &str, is_decision: bool) -> Value {
    match is_decision {
        true => matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes").into(),
        false => line.trim().into(),
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
        let question = Question { id: "q".to_owned(), value: json!({ "action_requests": [call] }) };
        assert!(show(&question, &mut out).unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("? bash {\"command\":\"rm ") && text.ends_with("\n  it removes\n  allow it? [y/N] "), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn only_a_yes_is_a_yes_and_words_stay_words() {
        for (line, yes) in [("y", true), (" YES ", true), ("", false), ("n", false), ("yes please", false)] {
            assert_eq!(read(line, true), json!(yes), "{line:?}");
        }
        assert_eq!(read(" red ", false), json!("red"));
    }
}
