//! What a conversation is made of: messages in the LangChain JSON shape, their fragments, and the usage they cost.

mod chunk;
mod content;
mod folded;
pub mod framework_tags;
mod invalid;
pub(crate) mod json_repair;
mod merge;
mod message;
mod own_words;
mod size;
mod tool_call;
mod usage;

pub use chunk::{MessageChunk, ToolCallChunk};
pub use content::Content;
pub use invalid::InvalidMessage;
pub use merge::MessageAccumulator;
#[cfg(test)]
pub(crate) use message::SERIALIZED;
pub use message::{Message, MessageBody, MessageKind, REMOVE_ALL, ToolStatus};
pub use own_words::own_words;
pub use size::TextSize;
pub use tool_call::{InvalidToolCall, ToolCall};
pub use usage::UsageMetadata;

/// What stands around a person's words in a request, so that a model can tell them from the framework's.
pub mod marks {
    /// Before them.
    pub const BEGIN_USER_INPUT: &str = "--- BEGIN USER INPUT ---";
    /// Behind them.
    pub const END_USER_INPUT: &str = "--- END USER INPUT ---";

    /// Somebody's text as part of a block of the framework's: it cannot close the block it stands in.
    pub(crate) fn escaped(text: &str) -> String {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    }
}

/// Keys of `additional_kwargs` that other software reads.
pub mod kwargs {
    /// The interface and memory skip the message.
    pub const HIDE_FROM_UI: &str = "hide_from_ui";
    /// Files the user attached to a human message.
    pub const FILES: &str = "files";
    /// The user's text before the framework rewrote it.
    pub const ORIGINAL_USER_CONTENT: &str = "original_user_content";
    /// The run that a human message started.
    pub const RUN_ID: &str = "run_id";
    /// When a human message arrived.
    pub const TIMESTAMP: &str = "timestamp";
    /// The model's reasoning, shown in a panel of its own.
    pub const REASONING_CONTENT: &str = "reasoning_content";
    /// Marks the text that stands in for an answer when the provider failed for good.
    pub const ERROR_FALLBACK: &str = "deerflow_error_fallback";
    /// Marks an answer that was cut off, by a cancel or by a provider: what had been streamed, and no more.
    pub const INCOMPLETE: &str = "incomplete";
    /// Why a guard took the calls out of an answer: the run ends with it.
    pub const GUARD_STOP: &str = "deerflow_guard_stop";
    /// Marks an answer that came after the run had to be asked for one.
    pub const ANSWER_RECOVERED: &str = "deerflow_answer_recovered";
    /// What an answer's tokens were spent on, for the interface.
    pub const TOKEN_USAGE_ATTRIBUTION: &str = "token_usage_attribution";
    /// Tokens of the run up to and with this answer.
    pub const RUN_USAGE: &str = "deerflow_run_usage";
    /// What the subagent of a result has cost.
    pub const SUBAGENT_TOKEN_USAGE: &str = "subagent_token_usage";
    /// Marks an answer whose usage has that of the subagents it called in it.
    pub const SUBAGENT_USAGE_ATTRIBUTED: &str = "subagent_token_usage_attributed";
    /// What answers cost that were taken back for this one.
    pub const FORGOTTEN_USAGE: &str = "deerflow_forgotten_usage";
    /// Marks an answer that a provider's safety filter broke off.
    pub const SAFETY_TERMINATION: &str = "safety_termination";
    /// What of a file was read or written: its path and the digest of its content.
    pub const READ_MARK: &str = "deerflow_read_mark";
    /// What `view_image` noted of a picture.
    pub const VIEWED_IMAGE: &str = "deerflow_viewed_image";
    /// Marks a message that shows viewed images to the model.
    pub const VIEW_IMAGE_CONTEXT: &str = "deerflow_view_image_context";
    /// A person's answer to a question that the agent asked.
    pub const HUMAN_INPUT_RESPONSE: &str = "human_input_response";
}
