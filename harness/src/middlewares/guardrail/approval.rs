//! Approval request for a tool call, and the note on a call that the user has edited.
//!
//! The request has the form of LangChain's human-in-the-loop middleware, which interfaces for
//! LangGraph show as a card.

use serde_json::{Value, json};

use crate::messages::{Content, ToolCall};
use crate::tools::approval::ALLOWED_DECISIONS;

/// Note for the model that the call in the conversation is not the one it wrote.
const EDITED: &str = "Note: the user changed this call before it was made. It stands in the conversation as it was made; do not make \
                      the call as you wrote it first.";

/// Builds the approval request: the call with exactly the arguments it would be made with.
pub(super) fn question(call: &ToolCall, reason: &str) -> Value {
    json!({
        "action_requests": [{ "name": call.name, "args": call.args, "description": reason }],
        "review_configs": [{ "action_name": call.name, "allowed_decisions": ALLOWED_DECISIONS }],
    })
}

/// Returns the result of an edited call, with the note before it.
pub(super) fn with_edit_note(result: Content) -> Content {
    match result {
        Content::Text(text) if text.is_empty() => Content::from(EDITED),
        Content::Text(text) => Content::Text(format!("{EDITED}\n\n{text}")),
        Content::Blocks(mut blocks) => {
            blocks.insert(0, json!({ "type": "text", "text": EDITED }));
            Content::Blocks(blocks)
        }
    }
}
