//! Errors of tools, by whether the model or the run receives them.

use serde::{Deserialize, Serialize};

/// Error of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ToolError {
    /// The model reads it as the tool's result, and the run continues.
    #[error("{0}")]
    ForModel(String),
    /// The run ends with this error.
    #[error("{message}")]
    EndRun {
        /// Error class, which clients receive as the error's name.
        name: String,
        /// Description of the error.
        message: String,
    },
}

impl ToolError {
    /// Creates an error that the model reads.
    pub fn for_model(text: impl Into<String>) -> Self {
        Self::ForModel(text.into())
    }
}
