//! Result types of a tool call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::messages::{Content, ToolStatus};
use crate::state::StateUpdate;

/// Next step of the agent loop after a tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolControl {
    /// Continues normally.
    #[default]
    Continue,
    /// Ends the run after the other calls of the batch finish.
    End,
    /// Interrupts the run with a question to the user. The call is repeated with the answer.
    Ask(Value),
    /// Interrupts the run with a question of a nested agent. Same as [`Ask`](Self::Ask), but the
    /// question has the id that the nested agent assigned.
    AskFor {
        /// Id of the question.
        id: String,
        /// The question.
        question: Value,
    },
    /// Interrupts the run because a middleware needs approval for the call.
    ///
    /// The answer becomes the call's [approval](crate::tools::approval::Approval). It is not passed
    /// to the tool as an answer, and a middleware does not receive answers that belong to the tool.
    /// An invalid answer leaves the question open and adds the reason under `error` if the question
    /// is an object.
    Approve(Value),
}

/// Result of a tool call. The content becomes the tool message; the state update is applied with
/// it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolOutput {
    /// Content that the model reads.
    pub content: Content,
    /// Status of the call: success or error.
    pub status: ToolStatus,
    /// Data for the interface that the model does not receive.
    pub artifact: Value,
    /// Additional fields of the message, for the framework and the interface.
    pub additional_kwargs: Map<String, Value>,
    /// Id of the message, if it must have a specific one.
    pub message_id: Option<String>,
    /// Further state changes.
    pub update: StateUpdate,
    /// Next step of the agent loop.
    pub control: ToolControl,
}

impl ToolOutput {
    /// Creates a result with plain text.
    pub fn text(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Creates a result without content that only controls the agent loop.
    pub fn only(control: ToolControl) -> Self {
        Self {
            control,
            ..Self::default()
        }
    }

    /// Creates an error result that the model reads.
    pub fn error(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            status: ToolStatus::Error,
            ..Self::default()
        }
    }
}

impl<T: Into<Content>> From<T> for ToolOutput {
    fn from(content: T) -> Self {
        Self::text(content)
    }
}
