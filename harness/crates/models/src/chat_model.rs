//! Port of chat models.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{ModelError, ModelRequest};
use deerflow_core::messages::MessageChunk;

/// Properties of a model entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Name of the entry, by which runs select the model.
    pub name: String,
    /// Name of the model at its provider.
    pub model: String,
    /// Provider kind, such as `openai`.
    pub provider: String,
    /// `true` if the model accepts images.
    pub supports_vision: bool,
}

/// Chunks of one answer. The last has `chunk_position: "last"`. A stream that ends without it was
/// truncated.
pub type ModelStream = BoxStream<'static, Result<MessageChunk, ModelError>>;

/// Model that answers lists of messages.
///
/// Guarantees: chunks have the id that the request names; [`deerflow_core::messages::MessageAccumulator`]
/// combines them into the final message; dropping the stream cancels the provider's work; every
/// wait has a timeout.
#[async_trait]
pub trait ChatModel: Send + Sync + std::fmt::Debug {
    /// Returns the properties of the model.
    fn info(&self) -> &ModelInfo;

    /// Returns the models to call, in order, after this one and all its retries have failed.
    fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
        &[]
    }

    /// Returns the maximum number of attempts per call, the first included, if the entry sets it.
    fn max_attempts(&self) -> Option<u32> {
        None
    }

    /// Reports whether all permits of this model are in use. If so, a call that timed out may never
    /// have been sent.
    fn is_full(&self) -> bool {
        false
    }

    /// Calls the model. Errors before the first chunk are returned here, later ones by the stream.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
}
