//! Values that an agent node publishes for the result of a turn.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::activation::Completion;
use super::output::NodeOutput;
use crate::adapter::{AgentTurnResult, TurnMode, TurnWarning};
use crate::bounded::prefix;
use crate::compiled::{AgentNode, Driver};
use crate::schema::OutputKind;

/// Maximum size of a text, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
const TRUNCATION_MARK: &str = "\n[truncated]";

/// Returns what a completed turn publishes.
pub fn turn_completion(node: &AgentNode, result: AgentTurnResult) -> Completion {
    let mut warnings = result.warnings;
    let (text, truncated) = bounded_text(result.final_text);
    if truncated {
        warnings.push(TurnWarning {
            code: "text_truncated".to_owned(),
            message: format!("the text is longer than {MAX_TEXT_BYTES} bytes"),
        });
    }
    let output = NodeOutput {
        structured: result.structured_output,
        turn_mode: Some(node.turn_mode),
        usage: result.usage,
        message_id: result.message_id,
        ..NodeOutput::text(text)
    };
    let ports = kind_ports(node.output_kind, &output);
    if node.output_kind == OutputKind::Score && ports.is_empty() {
        warnings.push(TurnWarning {
            code: "structured_output_missing".to_owned(),
            message: "the evaluation has no JSON object".to_owned(),
        });
    }
    Completion {
        output: Some(output),
        ports,
        warnings,
        ..Completion::default()
    }
}

/// Returns what a node publishes for a given value instead of a result: its text and, unless it is
/// text, the value itself.
pub(super) fn published(driver: &Driver, value: &Value) -> Completion {
    let (text, structured) = match value {
        Value::Null => (String::new(), None),
        Value::String(text) => (text.clone(), None),
        other => (other.to_string(), Some(other.clone())),
    };
    let (mode, kind) = match driver {
        Driver::Agent(node) => (Some(node.turn_mode), node.output_kind),
        _ => (None, OutputKind::Text),
    };
    let output = NodeOutput {
        structured,
        turn_mode: mode,
        ..NodeOutput::text(text)
    };
    let ports = match driver {
        Driver::Loader(_) => [("data".to_owned(), value.clone())].into(),
        _ => kind_ports(kind, &output),
    };
    Completion {
        output: Some(output),
        ports,
        ..Completion::default()
    }
}

/// Returns the port that the kind of the output names.
fn kind_ports(kind: OutputKind, output: &NodeOutput) -> BTreeMap<String, Value> {
    let structured = || output.structured.clone();
    let value = match kind {
        OutputKind::Text => None,
        OutputKind::Plan => structured().or_else(|| Some(json!({"plan": output.as_text()}))),
        OutputKind::Score => structured(),
        _ => structured().or_else(|| Some(output.as_text().into())),
    };
    let named = |value| (kind.port_name().to_owned(), value);
    value.map(named).into_iter().collect()
}

/// Truncates a text, between characters, to the maximum size of a port.
pub(super) fn bounded_text(mut text: String) -> (String, bool) {
    if text.len() <= MAX_TEXT_BYTES {
        return (text, false);
    }
    text.truncate(prefix(&text, MAX_TEXT_BYTES - TRUNCATION_MARK.len()).len());
    text.push_str(TRUNCATION_MARK);
    (text, true)
}

/// Returns the evaluation in a structured output: its score from 0 to 1, and whether the work can be
/// completed, which is true if it does not say.
pub(super) fn evaluation(value: &Value) -> Option<(f64, bool)> {
    let score = value
        .get("score")?
        .as_f64()
        .filter(|score| (0.0..=1.0).contains(score))?;
    let can_complete = value
        .get("canComplete")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    Some((score, can_complete))
}

impl OutputKind {
    /// Returns the name of the port.
    fn port_name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Plan => "plan",
            Self::Score => "score",
            Self::Code => "code",
            Self::Judge => "judge",
            Self::Review => "review",
            Self::Artifact => "artifact",
            Self::Decision => "decision",
        }
    }
}

/// Returns `true` if an output was made by an evaluating turn.
pub(super) fn is_evaluation(output: &NodeOutput) -> bool {
    output.turn_mode == Some(TurnMode::Evaluate)
}
