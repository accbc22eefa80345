//! Auxiliary model calls: requests of the framework itself, in addition to the conversation, such
//! as summaries, titles and suggestions.
//!
//! A call has a time limit and ends when its future is dropped. Its tokens are not streamed to
//! viewers. Its usage is recorded under the name of the caller.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::{
    Answering, Breakers, ChatModel, ModelCatalog, ModelError, ModelErrorKind, ModelRequest, Retry,
    RetryPolicy, stream_with_retry,
};
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_core::messages::{Message, MessageAccumulator, UsageMetadata};
use deerflow_runtime::agent::{AgentEvent, EventSink, ModelCallRecord, RunContext};

/// Maximum number of `{` in a text that are tried as the start of a JSON object.
const MAX_OBJECT_STARTS: usize = 64;

/// Models for auxiliary calls, with their circuit breakers and retry policy.
#[derive(Debug, Clone)]
pub struct AuxiliaryModels {
    /// All models. The first is the default.
    pub catalog: Arc<ModelCatalog>,
    /// Circuit breakers, shared with all other callers of these models.
    pub breakers: Arc<Breakers>,
    /// Retry policy of failed calls.
    pub retry: RetryPolicy,
}

/// Auxiliary request to a model.
#[derive(Debug, Clone)]
pub struct AuxiliaryRequest<'a> {
    /// Model entries to try in order until one answers. Empty means the default entry.
    pub models: Vec<&'a str>,
    /// System prompt.
    pub system: &'a str,
    /// Prompt with the instructions and the material.
    pub prompt: String,
    /// Time limit per model, retries included.
    pub limit: Duration,
}

/// Caller of an auxiliary request.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Name of the caller in events and usage records, such as `middleware:title`.
    pub caller: &'a str,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Source of ids.
    pub ids: &'a dyn IdSource,
    /// Event sink of the run that is charged, if the caller is part of a run.
    pub sink: Option<&'a EventSink>,
}

impl<'a> Caller<'a> {
    /// Creates the caller for a component of a run.
    pub fn within(ctx: &'a RunContext, caller: &'a str) -> Self {
        Self {
            caller,
            clock: &*ctx.clock,
            ids: &*ctx.ids,
            sink: Some(&ctx.sink),
        }
    }

    /// Returns the same caller with another name.
    #[must_use]
    pub fn called(self, caller: &'a str) -> Self {
        Self { caller, ..self }
    }

    fn emit(&self, event: impl FnOnce() -> AgentEvent) {
        if let Some(sink) = self.sink {
            sink.emit(event());
        }
    }
}

/// Answer to an auxiliary request.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliaryAnswer {
    /// Text of the answer without reasoning. Never blank.
    pub text: String,
    /// Model entry that answered.
    pub model: String,
    /// Token usage of the call.
    pub usage: Option<UsageMetadata>,
}

impl AuxiliaryModels {
    /// Tries one model after the other until one returns text. The error is the one of the last
    /// model.
    pub async fn ask(
        &self,
        auxiliary_request: &AuxiliaryRequest<'_>,
        caller: Caller<'_>,
    ) -> Result<AuxiliaryAnswer, ModelError> {
        let named = auxiliary_request.models.iter().map(|name| Some(*name));
        let candidates: Vec<Option<&str>> = if auxiliary_request.models.is_empty() {
            vec![None]
        } else {
            named.collect()
        };
        let mut tried: Vec<String> = Vec::new();
        let mut last = None;
        for name in candidates {
            let answer = match self.catalog.get_or_default(name) {
                Ok(model) if tried.contains(&model.info().name) => continue,
                Ok(model) => {
                    tried.push(model.info().name.clone());
                    self.call_model(&*model, auxiliary_request, caller).await
                }
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::warn!(caller = caller.caller, %error, "auxiliary model call failed");
                    caller.emit(|| AgentEvent::ModelError {
                        caller: caller.caller.to_owned(),
                        error: error.to_string(),
                    });
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| failure("", ModelErrorKind::Config, "no model is configured")))
    }

    async fn call_model(
        &self,
        model: &dyn ChatModel,
        auxiliary_request: &AuxiliaryRequest<'_>,
        caller: Caller<'_>,
    ) -> Result<AuxiliaryAnswer, ModelError> {
        let name = model.info().name.as_str();
        let started = Instant::now();
        let message_id = caller.ids.message_id();
        caller.emit(|| AgentEvent::ModelRequest {
            caller: caller.caller.to_owned(),
            model: name.to_owned(),
            message_count: 1,
            message_id: message_id.clone(),
        });
        let request = ModelRequest {
            message_id,
            system: Some(auxiliary_request.system.into()),
            messages: vec![Message::human(auxiliary_request.prompt.as_str())],
            tools: Arc::from([]),
            thinking: false,
            reasoning_effort: None,
            overrides: Map::new(),
        };
        let pending_answer = timeout(
            auxiliary_request.limit,
            self.collect_answer(model, request, caller),
        );
        let timeout_error = |_| {
            // The timeout dropped the call with its permit before the outcome was reported to the
            // circuit breaker.
            if !model.is_full()
                && let Ok(permit) = self.breakers.of(name).admit(caller.clock.now())
            {
                permit.failed(caller.clock.now());
            }
            Err(failure(
                name,
                ModelErrorKind::Stalled,
                "no answer within the time limit",
            ))
        };
        let (message, name) = pending_answer.await.unwrap_or_else(timeout_error)?;
        let text = strip_thinking(&message.content.text()).to_owned();
        let usage = message.usage().cloned();
        caller.emit(|| {
            AgentEvent::ModelCall(ModelCallRecord {
                call_id: caller.ids.random().to_string(),
                caller: caller.caller.to_owned(),
                model: name.clone(),
                usage: usage.clone(),
                message,
                latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            })
        });
        if text.is_empty() {
            return Err(failure(
                &name,
                ModelErrorKind::Transient,
                "the answer was empty",
            ));
        }
        Ok(AuxiliaryAnswer {
            text,
            model: name,
            usage,
        })
    }

    /// Collects the streamed answer. Returns it with the name of the model that answered.
    async fn collect_answer(
        &self,
        model: &dyn ChatModel,
        request: ModelRequest,
        caller: Caller<'_>,
    ) -> Result<(Message, String), ModelError> {
        let mut answer = MessageAccumulator::new(request.message_id.clone());
        let retry = Retry {
            policy: self.retry,
            breaker: Some(self.breakers.of(&model.info().name)),
            clock: caller.clock,
            jitter: &mut || f64::from(caller.ids.random().as_fields().0) / f64::from(u32::MAX),
            on_retry: &mut |_| {},
        };
        let Answering { model, mut chunks } = stream_with_retry(model, request, retry).await?;
        let mut whole = false;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            whole |= chunk.chunk_position.is_some();
            answer.push(&chunk);
        }
        if whole {
            Ok((answer.finish(), model))
        } else {
            Err(failure(
                &model,
                ModelErrorKind::Transient,
                "the answer was truncated",
            ))
        }
    }
}

fn failure(model: &str, kind: ModelErrorKind, message: &str) -> ModelError {
    ModelError {
        model: model.to_owned(),
        kind,
        message: message.to_owned(),
        status: None,
        retry_after: None,
    }
}

/// Returns the text without `<think>` blocks, also without one that is never closed.
pub fn strip_thinking(text: &str) -> &str {
    let text = text
        .rsplit_once("</think>")
        .map_or(text, |(_, behind)| behind);
    text.split_once("<think>")
        .map_or(text, |(before, _)| before)
        .trim()
}

/// Returns the first JSON object in a text that has all these keys. Ignores the text around it.
pub fn json_object(text: &str, keys: &[&str]) -> Option<Value> {
    let starts = text
        .match_indices('{')
        .map(|(at, _)| at)
        .take(MAX_OBJECT_STARTS);
    let mut objects = starts.filter_map(|at| {
        serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<Value>()
            .next()?
            .ok()
    });
    objects.find(|object| keys.iter().all(|key| object.get(key).is_some()))
}

#[cfg(test)]
#[path = "auxiliary_tests.rs"]
mod tests;
