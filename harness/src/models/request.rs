//! What a model is asked.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::messages::Message;

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// One question to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The id the answer shall have.
    pub message_id: String,
    /// System text, before all messages.
    pub system: Option<Arc<str>>,
    /// The conversation. Adapters send hidden messages like any other.
    pub messages: Vec<Message>,
    /// Tools the model may call.
    pub tools: Arc<[ToolSchema]>,
    /// Whether the model may think, where it can.
    pub thinking: bool,
    /// `minimal`, `low`, `medium`, `high`, where the model takes it.
    pub reasoning_effort: Option<String>,
    /// Overrides of the entry's own parameters, such as `temperature`.
    pub overrides: Map<String, Value>,
}
