//! Questions of a run at the terminal.

use std::io::{self, Write};

use deerflow_flow::machine::Question;
use serde_json::Value;

use super::report::one_line;
use crate::commands::chat::plain;

/// Writes a question with what a person needs to answer it.
pub(super) fn show(question: &Question, out: &mut dyn Write) -> io::Result<()> {
    let value = &question.value;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(context) = text("context").filter(|context| !context.is_empty()) {
        writeln!(out, "{}", plain(context))?;
    }
    // An agent asks with `question`, a node of the flow with `prompt`.
    let asked = text("prompt").or_else(|| text("question"));
    let prompt = match asked.filter(|prompt| !prompt.is_empty()) {
        Some(prompt) => prompt.to_owned(),
        None => value.to_string(),
    };
    writeln!(out, "? {}: {}", one_line(&question.node), plain(&prompt))?;
    if let Some(error) = text("error") {
        writeln!(out, "  not understood: {}", one_line(error))?;
    }
    let options = value.get("options").and_then(Value::as_array);
    let names: Vec<&str> = options
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() {
        write!(out, "  answer: ")?;
    } else {
        write!(out, "  {}: ", one_line(&names.join(" / ")))?;
    }
    out.flush()
}
