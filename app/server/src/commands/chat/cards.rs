//! Renders events for a terminal: streamed text, and a card for each tool call.
//!
//! If the output is not a terminal, only the text of the answers is written.

use std::io::{self, Write};

use harness::client::{EventKind, StreamEvent};
use serde_json::Value;

/// Maximum length of tool arguments and results, in characters.
const LINE: usize = 100;
/// Tool whose result is a question to the user.
const CLARIFICATION_TOOL: &str = "ask_clarification";

/// Writes the events of one answer.
#[derive(Debug)]
pub(super) struct Cards {
    is_interactive: bool,
    /// Id of the message whose text was written last.
    message: Option<String>,
    /// `true` if the last line has no line feed yet.
    open: bool,
}

impl Cards {
    pub(super) fn new(is_interactive: bool) -> Self {
        Self {
            is_interactive,
            message: None,
            open: false,
        }
    }

    pub(super) fn show(&mut self, event: &StreamEvent, out: &mut dyn Write) -> io::Result<()> {
        if let Some((id, text)) = event.text() {
            if self.message.as_deref() != Some(id) {
                self.close(out)?;
                self.message = Some(id.to_owned());
            }
            let text = plain(text);
            self.open = !text.ends_with('\n');
            write!(out, "{text}")?;
        } else if event.kind == EventKind::MessagesTuple && event.data["type"] == "tool" {
            self.result(&event.data, out)?;
        } else if event.kind == EventKind::MessagesTuple && self.is_interactive {
            for call in event.data["tool_calls"].as_array().into_iter().flatten() {
                self.close(out)?;
                writeln!(
                    out,
                    "● {} {}",
                    plain(call["name"].as_str().unwrap_or_default()),
                    first_line(&call["args"].to_string())
                )?;
            }
        } else if event.kind == EventKind::End && self.is_interactive {
            self.close(out)?;
            writeln!(out, "({} tokens)", event.data["usage"]["total_tokens"])?;
        }
        out.flush()
    }

    /// Ends the current line, if one is open.
    pub(super) fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close(out)?;
        out.flush()
    }

    fn result(&mut self, result: &Value, out: &mut dyn Write) -> io::Result<()> {
        let content = result["content"].as_str().unwrap_or_default();
        if result["name"] == CLARIFICATION_TOOL {
            self.close(out)?;
            return writeln!(out, "{}", plain(content));
        }
        if !self.is_interactive {
            return Ok(());
        }
        self.close(out)?;
        let mark = if result["status"] == "error" {
            "✗"
        } else {
            "⎿"
        };
        let more = content.lines().count().saturating_sub(1);
        let more = if more > 0 {
            format!(" (and {more} more lines)")
        } else {
            String::new()
        };
        writeln!(out, "  {mark} {}{more}", first_line(content))
    }

    fn close(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.open) {
            writeln!(out)
        } else {
            Ok(())
        }
    }
}

fn first_line(text: &str) -> String {
    let line = plain(text.lines().next().unwrap_or_default());
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Removes control and invisible characters that could steer the terminal or hide text: models and
/// tools may output untrusted content.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |letter: &char| {
        let steers = letter.is_control() && !matches!(letter, '\n' | '\t');
        let hides = matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        !steers && !hides
    };
    text.chars().filter(harmless).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(is_interactive: bool, events: &[(EventKind, Value)]) -> String {
        let mut out = Vec::new();
        let mut cards = Cards::new(is_interactive);
        for (kind, data) in events {
            cards
                .show(
                    &serde_json::from_value(json!({ "type": kind, "data": data })).unwrap(),
                    &mut out,
                )
                .unwrap();
        }
        cards.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn turn() -> Vec<(EventKind, Value)> {
        vec![
            (
                EventKind::MessagesTuple,
                json!({ "type": "ai", "id": "a", "content": "I look." }),
            ),
            (
                EventKind::MessagesTuple,
                json!({ "type": "ai", "id": "a", "content": "", "tool_calls": [{ "name": "ls", "args": { "path": "/" }, "id": "c" }] }),
            ),
            (
                EventKind::MessagesTuple,
                json!({ "type": "tool", "id": "t", "name": "ls", "content": "one\ntwo\nthree", "status": "success" }),
            ),
            (
                EventKind::MessagesTuple,
                json!({ "type": "ai", "id": "b", "content": "Three " }),
            ),
            (
                EventKind::MessagesTuple,
                json!({ "type": "ai", "id": "b", "content": "files." }),
            ),
            (EventKind::End, json!({ "usage": { "total_tokens": 12 } })),
        ]
    }

    #[test]
    fn terminal_shows_text_cards_and_tokens() {
        assert_eq!(
            shown(true, &turn()),
            "I look.\n● ls {\"path\":\"/\"}\n  ⎿ one (and 2 more lines)\nThree files.\n(12 tokens)\n"
        );
    }

    #[test]
    fn piped_output_has_text_only() {
        assert_eq!(shown(false, &turn()), "I look.\nThree files.\n");
    }

    #[test]
    fn question_is_shown_completely() {
        let clarification = json!({ "type": "tool", "id": "t", "name": CLARIFICATION_TOOL, "content": "Which?\n1. red\n2. blue", "status": "success" });
        assert_eq!(
            shown(false, &[(EventKind::MessagesTuple, clarification)]),
            "Which?\n1. red\n2. blue\n"
        );
    }

    #[test]
    fn output_contains_no_control_sequences() {
        let hostile = "\u{1b}]0;title\u{7}red\u{1b}[31m\u{9b}2J\r\u{202e}txt";
        assert_eq!(plain(hostile), "]0;titlered[31m2Jtxt");
        let result = json!({ "type": "tool", "id": "t", "name": "x\u{1b}[2J", "content": "a\u{1b}[2Jb", "status": "error" });
        assert!(!shown(true, &[(EventKind::MessagesTuple, result)]).contains('\u{1b}'));
    }
}
