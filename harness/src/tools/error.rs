//! A tool says who must hear about its failure.

use serde::{Deserialize, Serialize};

/// Why a tool failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ToolError {
    /// The model reads it as the tool's result and goes on.
    #[error("{0}")]
    ForModel(String),
    /// The run ends with it.
    #[error("{message}")]
    EndRun {
        /// The class clients see as the error's name.
        name: String,
        /// Why.
        message: String,
    },
}

impl ToolError {
    /// A failure the model shall read.
    pub fn for_model(text: impl Into<String>) -> Self {
        Self::ForModel(text.into())
    }
}
