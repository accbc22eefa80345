//! What a conversation is made of: messages in the LangChain JSON shape, their fragments, and the usage they cost.

mod chunk;
mod content;
mod merge;
mod message;
mod own_words;
mod size;
mod tool_call;
mod usage;

pub use chunk::{MessageChunk, ToolCallChunk};
pub use content::Content;
pub use merge::MessageAccumulator;
#[cfg(test)]
pub(crate) use message::SERIALIZED;
pub use message::{InvalidMessage, Message, MessageBody, MessageKind, REMOVE_ALL, ToolStatus};
pub use own_words::own_words;
pub use size::TextSize;
pub use tool_call::{InvalidToolCall, ToolCall};
pub use usage::UsageMetadata;

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
    /// A person's answer to a question that the agent asked.
    pub const HUMAN_INPUT_RESPONSE: &str = "human_input_response";
}
