//! A model with others behind it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// A model, and those that [`super::stream_with_retry`] asks when it fails for good.
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
