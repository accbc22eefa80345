//! Asks the user at the terminal about pending interrupts.

use std::io::{self, Write};

use harness::client::Question;
use serde_json::{Map, Value};

use super::cards::plain;

/// Writes an interrupt and a prompt.
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

/// Converts a line to an answer. An empty line rejects a call, as the prompt states; other text is
/// passed to the agent, parsed if it is JSON.
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

/// Converts text to answers for all interrupts; JSON may contain answers by interrupt id, or a list
/// of decisions on several calls.
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
#[path = "questions_tests.rs"]
mod tests;
