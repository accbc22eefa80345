//! Whether and when a failed model call is tried again: a pure decision, and the driver that acts on it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{ChatModel, CircuitBreaker, ModelError, ModelErrorKind, ModelRequest, ModelStream};
use crate::clock::Clock;

/// Tries of failures that seldom pass by waiting: the first and one more.
const TRIES_WHEN_HOPELESS: u32 = 2;

/// Patience with providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries per call, the first included.
    pub max_attempts: u32,
    /// Least wait before a retry.
    pub base: Duration,
    /// Most wait that is chosen here.
    pub cap: Duration,
    /// Least wait when the provider says "too fast".
    pub burst_base: Duration,
    /// Most wait that a provider may ask for. A call that would have to wait longer fails at once.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base: Duration::from_millis(1000),
            cap: Duration::from_millis(8000),
            burst_base: Duration::from_millis(5000),
            longest_asked: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// How many tries a failure of this class gets in all.
    pub fn attempts_for(&self, kind: ModelErrorKind) -> u32 {
        match kind {
            ModelErrorKind::Burst | ModelErrorKind::Stalled => {
                self.max_attempts.min(TRIES_WHEN_HOPELESS)
            }
            kind if kind.is_retriable() => self.max_attempts,
            _ => 1,
        }
    }

    /// The wait before the next try after `attempt` tries (at least 1) ended in `error`, or `None` to give up. `jitter` is
    /// drawn from 0..1; `previous` is the wait before the try that just failed. What the provider asks for wins; else waits
    /// are decorrelated, so that many callers do not come back together.
    pub fn next_delay(
        &self,
        attempt: u32,
        previous: Option<Duration>,
        error: &ModelError,
        jitter: f64,
    ) -> Option<Duration> {
        if attempt >= self.attempts_for(error.kind) {
            return None;
        }
        if let Some(asked) = error.retry_after {
            return (asked <= self.longest_asked).then_some(asked);
        }
        let base = if error.kind == ModelErrorKind::Burst {
            self.burst_base
        } else {
            self.base
        };
        let upper = previous
            .unwrap_or(base)
            .saturating_mul(3)
            .max(base)
            .min(self.cap);
        let lower = base.min(upper);
        Some(lower + (upper - lower).mul_f64(jitter.clamp(0.0, 1.0)))
    }
}

/// A retry that is about to be waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryNotice {
    /// The try that failed, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// The wait before the next.
    pub wait: Duration,
    /// Why.
    pub error: ModelError,
}

impl RetryNotice {
    /// The custom event that viewers see.
    pub fn event(&self) -> Value {
        json!({
            "type": "llm_retry",
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "wait_ms": u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX),
            "reason": self.error.kind.as_str(),
            "message": format!("{}; trying again in {:.1} s", self.error, self.wait.as_secs_f64()),
        })
    }
}

/// What a retried call needs beside the model and the request.
pub struct Retry<'a> {
    /// Patience.
    pub policy: RetryPolicy,
    /// The model's circuit, if it has one.
    pub breaker: Option<Arc<CircuitBreaker>>,
    /// Time for the circuit.
    pub clock: &'a dyn Clock,
    /// A draw from 0..1 for each wait.
    pub jitter: &'a mut (dyn FnMut() -> f64 + Send),
    /// Told before each wait.
    pub on_retry: &'a mut (dyn FnMut(&RetryNotice) + Send),
}

impl std::fmt::Debug for Retry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry")
            .field("policy", &self.policy)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// An answer that has begun.
pub struct Answering {
    /// The entry that answers: the one that was asked, or one behind it.
    pub model: String,
    /// What it says.
    pub chunks: ModelStream,
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Asks `model`, again where that may help, then its fallbacks alike, until a first chunk is there. From then on an error is
/// final: a viewer has seen text, and another try would say it twice. Dropping the future ends it at any point. When nobody
/// answers, the error is the one of `model` itself.
pub async fn stream_with_retry(
    model: &dyn ChatModel,
    request: ModelRequest,
    mut retry: Retry<'_>,
) -> Result<Answering, ModelError> {
    let breaker = retry.breaker.take();
    let answering = |model: &dyn ChatModel, chunks| Answering {
        model: model.info().name.clone(),
        chunks,
    };
    let error = match ask(model, &request, &mut retry, breaker).await {
        Ok(chunks) => return Ok(answering(model, chunks)),
        // What one model refuses for what it says, nobody else is asked.
        Err(error) if error.kind == ModelErrorKind::BadRequest => return Err(error),
        Err(error) => error,
    };
    for other in model.fallbacks() {
        tracing::warn!(%error, instead = other.info().name, "a model failed for good, another is asked");
        match ask(&**other, &request, &mut retry, None).await {
            Ok(chunks) => return Ok(answering(&**other, chunks)),
            Err(fault) => tracing::warn!(%fault, "a fallback failed too"),
        }
    }
    Err(error)
}

/// Asks one model until a first chunk is there or patience ends.
async fn ask(
    model: &dyn ChatModel,
    request: &ModelRequest,
    retry: &mut Retry<'_>,
    breaker: Option<Arc<CircuitBreaker>>,
) -> Result<ModelStream, ModelError> {
    let permit = match breaker
        .as_ref()
        .map(|breaker| breaker.admit(retry.clock.now()))
        .transpose()
    {
        Ok(permit) => permit,
        Err(wait) => return Err(circuit_open(model, wait)),
    };
    let usual = retry.policy;
    let policy = RetryPolicy {
        max_attempts: model.max_attempts().unwrap_or(usual.max_attempts),
        ..usual
    };
    let mut previous = None;
    let mut attempt = 1;
    loop {
        let error = match first_chunk(model, request.clone()).await {
            Ok(stream) => {
                if let Some(permit) = permit {
                    permit.succeeded();
                }
                return Ok(stream);
            }
            Err(error) => error,
        };
        let Some(wait) = policy.next_delay(attempt, previous, &error, (retry.jitter)()) else {
            if let Some(permit) = permit {
                match error.kind {
                    // We were too fast: that says nothing of the provider.
                    ModelErrorKind::Burst => drop(permit),
                    kind if kind.is_retriable() => permit.failed(retry.clock.now()),
                    // A refusal is an answer: the provider works.
                    _ => permit.succeeded(),
                }
            }
            return Err(error);
        };
        let notice = RetryNotice {
            attempt,
            max_attempts: policy.attempts_for(error.kind),
            wait,
            error,
        };
        (retry.on_retry)(&notice);
        tokio::time::sleep(wait).await;
        previous = Some(wait);
        attempt += 1;
    }
}

/// The stream with its first chunk already there, put back in front.
async fn first_chunk(
    model: &dyn ChatModel,
    request: ModelRequest,
) -> Result<ModelStream, ModelError> {
    let mut rest = model.stream(request).await?;
    match rest.next().await {
        Some(first) => Ok(Box::pin(stream::iter([Ok(first?)]).chain(rest))),
        None => Err(model_error(
            model,
            ModelErrorKind::Transient,
            "the answer was empty".to_owned(),
        )),
    }
}

fn circuit_open(model: &dyn ChatModel, wait: Duration) -> ModelError {
    let message = format!(
        "it failed too often in a row and is left alone; next try in {} s",
        wait.as_secs_f64().ceil()
    );
    ModelError {
        retry_after: Some(wait),
        ..model_error(model, ModelErrorKind::Busy, message)
    }
}

fn model_error(model: &dyn ChatModel, kind: ModelErrorKind, message: String) -> ModelError {
    ModelError {
        model: model.info().name.clone(),
        kind,
        message,
        status: None,
        retry_after: None,
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
