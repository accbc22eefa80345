//! Chat models: the port, what is asked and answered, and one folder per provider wire.

mod chat_model;
mod classify;
mod error;
mod request;

pub mod scripted;

pub use chat_model::{ChatModel, ModelInfo, ModelStream};
pub use error::{ModelError, ModelErrorKind};
pub use request::{ModelRequest, ToolSchema};
pub use scripted::ScriptedModel;
