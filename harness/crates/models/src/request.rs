//! Request to a model.

use std::sync::Arc;

use serde_json::{Map, Value};

use deerflow_core::messages::Message;

/// Tool definition for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// Name of the tool.
    pub name: String,
    /// Purpose of the tool.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// Request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Id of the answer's message.
    pub message_id: String,
    /// System text, before all messages.
    pub system: Option<Arc<str>>,
    /// Messages of the conversation. Adapters send hidden messages like any other.
    pub messages: Vec<Message>,
    /// Tools the model may call.
    pub tools: Arc<[ToolSchema]>,
    /// `true` if the model may think, provided that it supports thinking.
    pub thinking: bool,
    /// `minimal`, `low`, `medium` or `high`. Ignored if the model does not support it.
    pub reasoning_effort: Option<String>,
    /// Overrides of the entry's own parameters, such as `temperature`.
    pub overrides: Map<String, Value>,
}
