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
///
/// ```
/// use async_trait::async_trait;
/// use deerflow_core::messages::MessageChunk;
/// use deerflow_models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};
/// use futures_util::StreamExt;
///
/// /// Model that answers with the number of messages.
/// #[derive(Debug)]
/// struct Counter(ModelInfo);
///
/// #[async_trait]
/// impl ChatModel for Counter {
///     fn info(&self) -> &ModelInfo {
///         &self.0
///     }
///
///     async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
///         let mut chunk = MessageChunk::empty(request.message_id);
///         chunk.content = format!("{} messages", request.messages.len());
///         chunk.chunk_position = Some("last");
///         Ok(futures_util::stream::iter([Ok(chunk)]).boxed())
///     }
/// }
/// ```
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
