//! Live output of a tool call for viewers: what its process prints.

use serde::Serialize;

/// A piece of the output of a running call. The serialized form is sent to viewers of `custom`. The
/// result of the call contains the output too, so the journal does not store the pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveOutput {
    /// The next piece of a stream. The pieces in order form the printed output.
    ToolOutput {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool: String,
        /// Stream of the process.
        stream: OutputStream,
        /// Whole characters, never empty.
        data: String,
    },
    /// The output was truncated; no more pieces follow for this call.
    ToolOutputTruncated {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool: String,
        /// Number of characters sent, over all streams.
        shown_chars: usize,
    },
}

/// Output stream of a process.
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
