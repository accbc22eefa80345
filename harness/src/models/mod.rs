//! Chat models: the port, what is asked and answered, and one folder per provider wire.

mod chat_model;
mod error;
mod request;

pub use chat_model::{ChatModel, ModelInfo, ModelStream};
pub use error::{ModelError, ModelErrorKind};
pub use request::{ModelRequest, ToolSchema};
