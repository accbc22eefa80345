//! Limits the concurrent calls of a model and sets its maximum number of attempts, as its entry
//! configures.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use deerflow_core::actor_context::effective_user_id;
use deerflow_core::fair_permits::FairPermits;

use super::{
    ChatModel, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream,
};

/// Maximum time that a call waits for its permit.
const MAX_PERMIT_WAIT: Duration = Duration::from_secs(300);

/// Model with a limited number of permits. Users who wait receive them in turns, and the calls of one
/// user in their order. Dropping the future of a waiting call removes it from the queue.
#[derive(Debug)]
pub(super) struct ConcurrencyLimited {
    model: Arc<dyn ChatModel>,
    max_attempts: Option<u32>,
    permits: Option<FairPermits>,
}

impl ConcurrencyLimited {
    /// Wraps `model` with the limits of its entry. Returns `model` itself if the entry sets none.
    pub(super) fn wrap(entry: &ModelEntry, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        let permits = entry
            .max_concurrent_calls
            .filter(|max_calls| *max_calls > 0)
            .map(|max_calls| FairPermits::new("model_calls", max_calls));
        let max_attempts = entry.max_retries.map(|retries| retries.saturating_add(1));
        if permits.is_none() && max_attempts.is_none() {
            return model;
        }
        Arc::new(Self {
            model,
            max_attempts,
            permits,
        })
    }

    fn no_permit_error(&self) -> ModelError {
        let waited = MAX_PERMIT_WAIT.as_secs();
        let message = format!(
            "no permit for another call within {waited} s; `max_concurrent_calls` limits the concurrent calls"
        );
        // `Burst` does not count as a failure of the provider.
        ModelError {
            model: self.info().name.clone(),
            kind: ModelErrorKind::Burst,
            message,
            status: None,
            retry_after: None,
        }
    }
}

#[async_trait]
impl ChatModel for ConcurrencyLimited {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
        self.model.fallbacks()
    }

    fn max_attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    fn is_full(&self) -> bool {
        self.permits.as_ref().is_some_and(FairPermits::is_exhausted)
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some(permits) = &self.permits else {
            return self.model.stream(request).await;
        };
        let user = effective_user_id();
        let Some(permit) = permits.acquire_within(&user, MAX_PERMIT_WAIT).await else {
            return Err(self.no_permit_error());
        };
        let answer = self.model.stream(request).await?;
        // The permit is released when the answer has ended or its stream is dropped.
        Ok(Box::pin(stream::unfold(
            (answer, permit),
            |(mut answer, permit)| async move {
                let chunk = answer.next().await?;
                Some((chunk, (answer, permit)))
            },
        )))
    }
}

#[cfg(test)]
#[path = "concurrency_limit_tests.rs"]
mod tests;
