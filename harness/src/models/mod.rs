//! Chat models: the port, what is asked and answered, and one folder per provider wire.
//!
//! To add a provider: 1. a folder with its request, its decoder (both pure) and a driver that implements [`ChatModel`];

mod breaker;
mod chat_model;
mod classify;
mod error;
mod request;
mod retry;

pub mod scripted;

pub use breaker::{BreakerPolicy, Breakers, CallPermit, Circuit, CircuitBreaker};
pub use chat_model::{ChatModel, ModelInfo, ModelStream};
pub use error::{ModelError, ModelErrorKind};
pub use request::{ModelRequest, ToolSchema};
pub use retry::{Retry, RetryNotice, RetryPolicy, stream_with_retry};
pub use scripted::ScriptedModel;
