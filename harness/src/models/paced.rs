//! A model as its entry paces it: how many calls at once, and how often one is tried.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{
    ChatModel, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream,
};

/// The longest that a call waits for its place.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A model with so many places. Who waits for one leaves by being dropped; places are given in the order of asking.
#[derive(Debug)]
pub(super) struct Paced {
    model: Arc<dyn ChatModel>,
    max_attempts: Option<u32>,
    places: Option<Arc<Semaphore>>,
}

impl Paced {
    /// `model` by what its entry says; the model itself where that is nothing.
    pub(super) fn by(entry: &ModelEntry, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        let places = entry
            .max_concurrent_calls
            .filter(|most| *most > 0)
            .map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        let max_attempts = entry.max_retries.map(|retries| retries.saturating_add(1));
        if places.is_none() && max_attempts.is_none() {
            return model;
        }
        Arc::new(Self {
            model,
            max_attempts,
            places,
        })
    }

    fn no_place(&self) -> ModelError {
        let waited = LONGEST_WAIT.as_secs();
        let message = format!(
            "no place for another call became free in {waited} s; `max_concurrent_calls` says how many there are"
        );
        // Of a kind that says nothing of the provider.
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
impl ChatModel for Paced {
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
        self.places
            .as_ref()
            .is_some_and(|places| places.available_permits() == 0)
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some(places) = &self.places else {
            return self.model.stream(request).await;
        };
        let Ok(Ok(place)) = timeout(LONGEST_WAIT, Arc::clone(places).acquire_owned()).await else {
            return Err(self.no_place());
        };
        let answer = self.model.stream(request).await?;
        // The place is free as soon as the answer has ended or nobody listens to it any more.
        Ok(Box::pin(stream::unfold(
            (answer, place),
            |(mut answer, place)| async move {
                let chunk = answer.next().await?;
                Some((chunk, (answer, place)))
            },
        )))
    }
}

#[cfg(test)]
#[path = "paced_tests.rs"]
mod tests;
