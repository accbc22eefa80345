//! Messages of a conversation in the LangChain JSON shape, their fragments, and their token usage.

mod chunk;
mod content;
mod folded;
mod framed;
pub mod framework_tags;
mod invalid;
pub mod json_repair;
mod merge;
mod message;
mod message_body;
mod message_json;
mod provider_json;
mod sent_messages;
mod size;
mod text_pieces;
mod tool_call;
mod usage;
mod user_text;

pub use chunk::{MessageChunk, ToolCallChunk};
pub use content::{Content, block_text};
pub use invalid::InvalidMessage;
pub use merge::MessageAccumulator;
pub use message::{Message, REMOVE_ALL};
pub use message_body::{MessageBody, MessageKind, ToolStatus};
#[cfg(any(test, feature = "testkit"))]
pub use message_json::SERIALIZED;
pub use size::TextSize;
pub use text_pieces::{Frame, TextPieces};
pub use tool_call::{InvalidToolCall, ToolCall};
pub use usage::UsageMetadata;
pub use user_text::user_text;

/// Markers around user input in a request, so that a model can distinguish it from the framework's
/// text.
pub mod marks {
    /// Marker before the input.
    pub const BEGIN_USER_INPUT: &str = "--- BEGIN USER INPUT ---";
    /// Marker after the input.
    pub const END_USER_INPUT: &str = "--- END USER INPUT ---";

    /// Escapes untrusted text for a block of the framework, so that it cannot close the block.
    pub fn escaped(text: &str) -> String {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    }
}

/// Keys of `additional_kwargs` that other software reads.
pub mod kwargs {
    /// The user interface and memory extraction skip the message.
    pub const HIDE_FROM_UI: &str = "hide_from_ui";
    /// Files attached to a human message.
    pub const FILES: &str = "files";
    /// Text of the user before the framework rewrote it.
    pub const ORIGINAL_USER_CONTENT: &str = "original_user_content";
    /// Run that a human message started.
    pub const RUN_ID: &str = "run_id";
    /// Arrival time of a human message.
    pub const TIMESTAMP: &str = "timestamp";
    /// Reasoning of the model, displayed in a separate panel.
    pub const REASONING_CONTENT: &str = "reasoning_content";
    /// Marks the text that replaces an answer when the provider failed permanently.
    pub const ERROR_FALLBACK: &str = "deerflow_error_fallback";
    /// Marks an answer that was interrupted, by a cancel or by a provider: it contains the streamed
    /// part only.
    pub const INCOMPLETE: &str = "incomplete";
    /// Reason for which a guard removed the calls from an answer; the run ends with it.
    pub const GUARD_STOP: &str = "deerflow_guard_stop";
    /// Marks an answer that the model wrote only after the run requested it explicitly.
    pub const ANSWER_RECOVERED: &str = "deerflow_answer_recovered";
    /// Attribution of an answer's tokens to purposes, for the user interface.
    pub const TOKEN_USAGE_ATTRIBUTION: &str = "token_usage_attribution";
    /// Tokens of the run up to and including this answer.
    pub const RUN_USAGE: &str = "deerflow_run_usage";
    /// Token usage of the subagent of a result.
    pub const SUBAGENT_TOKEN_USAGE: &str = "subagent_token_usage";
    /// Marks an answer whose usage includes that of the subagents it called.
    pub const SUBAGENT_USAGE_ATTRIBUTED: &str = "subagent_token_usage_attributed";
    /// Token usage of retracted answers that this one replaces.
    pub const FORGOTTEN_USAGE: &str = "deerflow_forgotten_usage";
    /// Marks an answer that a provider's safety filter interrupted.
    pub const SAFETY_TERMINATION: &str = "safety_termination";
    /// File that was read or written: its path and the digest of its content.
    pub const READ_MARK: &str = "deerflow_read_mark";
    /// Image data recorded by `view_image`.
    pub const VIEWED_IMAGE: &str = "deerflow_viewed_image";
    /// Marks a message that passes viewed images to the model.
    pub const VIEW_IMAGE_CONTEXT: &str = "deerflow_view_image_context";
    /// Answer of the user to a question of the agent.
    pub const HUMAN_INPUT_RESPONSE: &str = "human_input_response";
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::messages::user_text as own_words;
