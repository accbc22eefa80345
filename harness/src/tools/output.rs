//! What a tool gives back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::messages::{Content, ToolStatus};
use crate::state::StateUpdate;

/// Where the loop goes after the tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolControl {
    /// On, as usual.
    #[default]
    Continue,
    /// To the end of the run, once the other calls of the batch are done.
    End,
    /// It asks a person: the run stops, and the call is made again with the answer.
    Ask(Value),
    /// An agent inside of it asks a person: as before, and the question keeps the id that it has there.
    AskFor {
        /// The question's id.
        id: String,
        /// The question.
        question: Value,
    },
    /// A middleware asks a person whether the call may be made at all: as before, and the answer is the call's
    /// [approval](crate::tools::approval::Approval), which no tool takes for an answer of its own, nor a middleware a tool's. An answer
    /// that is no decision leaves the question open, with the reason under `error` of a question that is an object.
    Approve(Value),
}

/// A tool's result. The text becomes the tool message; an update is reduced beside it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Content,
    /// Success or error.
    pub status: ToolStatus,
    /// What the interface gets and the model does not.
    pub artifact: Value,
    /// Marks on the message, for the framework and the interface.
    pub additional_kwargs: Map<String, Value>,
    /// The message's id, when it must be a certain one.
    pub message_id: Option<String>,
    /// Further changes to the state.
    pub update: StateUpdate,
    /// Where the loop goes.
    pub control: ToolControl,
}

impl ToolOutput {
    /// Plain text for the model.
    pub fn text(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// No result, only where the loop goes.
    pub fn only(control: ToolControl) -> Self {
        Self {
            control,
            ..Self::default()
        }
    }

    /// An error text for the model.
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
