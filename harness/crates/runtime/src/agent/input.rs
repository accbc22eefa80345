//! Conversion of a client's input to channel values.

use serde_json::{Map, Value};

use deerflow_core::state::Channels;

/// Maximum length of the names in an error, in characters.
const MAX_NAMED_CHARS: usize = 200;

/// Reason why an agent does not accept an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Keys that the agent does not accept.
    #[error("unknown thread-state field(s): {}", shortened(.0))]
    UnknownFields(Vec<String>),
    /// A value that the agent does not accept.
    #[error("{}: {reason}", .path.join("."))]
    Invalid {
        /// Location of the value in the input: keys and indices from outside in.
        path: Vec<String>,
        /// Problem to fix.
        reason: String,
        /// Received value; null if it is missing.
        value: Value,
    },
}

fn shortened(names: &[String]) -> String {
    names.join(", ").chars().take(MAX_NAMED_CHARS).collect()
}

/// Returns the values unchanged if each key is `messages` or one of `channels`.
pub fn known_channels(
    values: Map<String, Value>,
    channels: &Channels,
) -> Result<Map<String, Value>, InputError> {
    let unknown = channels.unknown(values.keys());
    if unknown.is_empty() {
        Ok(values)
    } else {
        Err(InputError::UnknownFields(unknown))
    }
}
