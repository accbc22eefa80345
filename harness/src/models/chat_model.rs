//! The port of a chat model.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{ModelError, ModelRequest};
use crate::messages::MessageChunk;

/// What is known of a model entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The entry's name: what a run asks for.
    pub name: String,
    /// The provider's own name of the model.
    pub model: String,
    /// The provider kind, such as `openai`.
    pub provider: String,
    /// Whether images may be sent.
    pub supports_vision: bool,
}

/// Fragments of one answer. The last has `chunk_position: "last"`; a stream that ends without it was cut.
pub type ModelStream = BoxStream<'static, Result<MessageChunk, ModelError>>;

/// A model that answers message lists. Promises: chunks carry the id the request names; they add up, by
/// [`crate::messages::MessageAccumulator`], to the final message; dropping the stream ends the provider's work; no wait is
/// unbounded.
#[async_trait]
pub trait ChatModel: Send + Sync + std::fmt::Debug {
    /// Facts about it.
    fn info(&self) -> &ModelInfo;

    /// Models to ask instead, in order, when this one fails for good.
    fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
        &[]
    }

    /// How often a call is tried, the first time included, where the entry says so.
    fn max_attempts(&self) -> Option<u32> {
        None
    }

    /// Whether another call would have to wait for its turn: one that was not answered in time may then not have been made.
    fn is_full(&self) -> bool {
        false
    }

    /// Asks. Errors before the first chunk are returned here.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
}
