//! Model with fallback models.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// Model, and the models that [`super::stream_with_retry`] calls after this one and all its retries
/// have failed.
#[derive(Debug)]
pub(super) struct WithFallbacks {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) fallbacks: Vec<Arc<dyn ChatModel>>,
}

#[async_trait]
impl ChatModel for WithFallbacks {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
        &self.fallbacks
    }

    fn max_attempts(&self) -> Option<u32> {
        self.model.max_attempts()
    }

    fn is_full(&self) -> bool {
        self.model.is_full()
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.model.stream(request).await
    }
}
