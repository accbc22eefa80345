//! Writes a flow document as text.

use super::document::Flow;

/// The document cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot write the flow: {0}")]
pub struct WriteError(String);

impl Flow {
    /// Writes the document as JSON. Reading the text again returns the same document.
    ///
    /// # Errors
    /// The document contains a value that JSON cannot represent.
    pub fn to_json(&self) -> Result<String, WriteError> {
        serde_json::to_string_pretty(self).map_err(|error| WriteError(error.to_string()))
    }

    /// Writes the document as YAML. Reading the text again returns the same document.
    ///
    /// # Errors
    /// The document contains a value that YAML cannot represent.
    pub fn to_yaml(&self) -> Result<String, WriteError> {
        serde_saphyr::to_string(self).map_err(|error| WriteError(error.to_string()))
    }
}
