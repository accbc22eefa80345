//! Error of a web tool that the model reads.

use std::fmt::Display;

use crate::tools::ToolError;

/// Creates an error that the model reads.
pub(super) fn failed(why: impl Display) -> ToolError {
    ToolError::for_model(format!("Error: {why}"))
}
