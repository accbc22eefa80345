//! Retries of failed model calls: a pure policy, and the driver that applies it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{ChatModel, CircuitBreaker, ModelError, ModelErrorKind, ModelRequest, ModelStream};
use deerflow_core::clock::Clock;

/// Maximum attempts for failures that a retry seldom fixes, including the first.
const MAX_ATTEMPTS_UNLIKELY: u32 = 2;

/// Retry policy of model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum attempts per call, the first included.
    pub max_attempts: u32,
    /// Minimum delay before a retry.
    pub base: Duration,
    /// Maximum delay that this policy chooses.
    pub cap: Duration,
    /// Minimum delay after a short-term rate limit.
    pub burst_base: Duration,
    /// Maximum delay that a provider may request. A call with a longer one fails at once.
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
    /// Returns the maximum number of attempts for a failure of this class.
    pub fn attempts_for(&self, kind: ModelErrorKind) -> u32 {
        match kind {
            ModelErrorKind::Burst | ModelErrorKind::Stalled => {
                self.max_attempts.min(MAX_ATTEMPTS_UNLIKELY)
            }
            kind if kind.is_retriable() => self.max_attempts,
            _ => 1,
        }
    }

    /// Returns the delay before the next attempt after `attempt` attempts (at least 1) failed with
    /// `error`, or `None` if no further attempt is allowed. `jitter` is a random number in 0..1.
    /// `previous` is the delay before the failed attempt. A delay that the provider requests takes
    /// precedence. Otherwise delays have decorrelated jitter, so that many callers do not retry at
    /// the same time.
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
        if let Some(requested) = error.retry_after {
            return (requested <= self.longest_asked).then_some(requested);
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

/// Report of a retry, sent before its delay.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryNotice {
    /// Number of the failed attempt, from 1.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Delay before the next attempt.
    pub wait: Duration,
    /// Error of the failed attempt.
    pub error: ModelError,
}

impl RetryNotice {
    /// Returns the custom event for viewers.
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

/// Parameters of a retried call in addition to the model and the request.
pub struct Retry<'a> {
    /// Retry policy.
    pub policy: RetryPolicy,
    /// Circuit breaker of the model, if it has one.
    pub breaker: Option<Arc<CircuitBreaker>>,
    /// Clock for the circuit breaker.
    pub clock: &'a dyn Clock,
    /// Returns a random number in 0..1 for each delay.
    pub jitter: &'a mut (dyn FnMut() -> f64 + Send),
    /// Called before each delay.
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

/// Answer whose first chunk has arrived.
pub struct Answering {
    /// Model entry that answers: the requested one or one of its fallbacks.
    pub model: String,
    /// Chunks of the answer.
    pub chunks: ModelStream,
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Calls `model` with retries until a first chunk arrives. If it fails, calls its fallbacks in
/// order, with retries as well. An error after the first chunk is final: viewers have already
/// received text, and a retry would repeat it. Dropping the future cancels the call at any point.
/// If all models fail, returns the error of `model`.
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
    let error = match call_model(model, &request, &mut retry, breaker).await {
        Ok(chunks) => return Ok(answering(model, chunks)),
        // A request that one model rejects for its content is not sent to the fallbacks.
        Err(error) if error.kind == ModelErrorKind::BadRequest => return Err(error),
        Err(error) => error,
    };
    for other in model.fallbacks() {
        tracing::warn!(%error, instead = other.info().name, "model call failed, trying a fallback");
        match call_model(&**other, &request, &mut retry, None).await {
            Ok(chunks) => return Ok(answering(&**other, chunks)),
            Err(fallback_error) => tracing::warn!(%fallback_error, "fallback model failed"),
        }
    }
    Err(error)
}

/// Calls one model with retries until a first chunk arrives or the policy allows no further
/// attempt.
async fn call_model(
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
    let default_policy = retry.policy;
    let policy = RetryPolicy {
        max_attempts: model.max_attempts().unwrap_or(default_policy.max_attempts),
        ..default_policy
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
                    // A rate limit is no failure of the provider.
                    ModelErrorKind::Burst => drop(permit),
                    kind if kind.is_retriable() => permit.failed(retry.clock.now()),
                    // A rejected request is a response: the provider works.
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

/// Returns the stream after its first chunk has arrived, with that chunk in front.
async fn first_chunk(
    model: &dyn ChatModel,
    request: ModelRequest,
) -> Result<ModelStream, ModelError> {
    let mut chunks = model.stream(request).await?;
    match chunks.next().await {
        Some(first) => Ok(Box::pin(stream::iter([Ok(first?)]).chain(chunks))),
        None => Err(model_error(
            model,
            ModelErrorKind::Transient,
            "the answer was empty".to_owned(),
        )),
    }
}

fn circuit_open(model: &dyn ChatModel, wait: Duration) -> ModelError {
    let message = format!(
        "circuit breaker is open after repeated failures; next attempt in {} s",
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
