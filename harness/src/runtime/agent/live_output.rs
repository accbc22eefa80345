//! What viewers are told of a call while it is at work: what its program prints.

use serde::Serialize;

/// A piece of what a call prints. Viewers of `custom` get it as it is serialized here; the call's result has it too, so nobody else
/// needs it and no journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveOutput {
    /// The next of a stream. All of them in their order are what was printed on it.
    ToolOutput {
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
        /// Which of its streams.
        stream: OutputStream,
        /// Whole characters, never none.
        data: String,
    },
    /// There is more, and it is not told; nothing follows for this call.
    ToolOutputTruncated {
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
        /// How many characters were told, of all streams.
        shown_chars: usize,
    },
}

/// The streams that a program prints on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_have_the_documented_shape() {
        let (tool_call_id, tool) = ("c1".to_owned(), "bash".to_owned());
        let piece = LiveOutput::ToolOutput {
            tool_call_id: tool_call_id.clone(),
            tool: tool.clone(),
            stream: OutputStream::Stderr,
            data: "x".into(),
        };
        let shape = json!({"type": "tool_output", "tool_call_id": "c1", "tool": "bash", "stream": "stderr", "data": "x"});
        assert_eq!(json!(piece), shape);
        let notice = LiveOutput::ToolOutputTruncated {
            tool_call_id,
            tool,
            shown_chars: 7,
        };
        assert_eq!(
            json!(notice),
            json!({"type": "tool_output_truncated", "tool_call_id": "c1", "tool": "bash", "shown_chars": 7})
        );
    }
}
