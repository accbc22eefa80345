//! Questions that the framework itself puts to a model, beside the conversation: summaries, titles, suggestions.
//!
//! They are bounded in time, end when their future is dropped, never reach viewers as tokens, and count under the name of who asks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::{
    Answering, Breakers, ChatModel, ModelCatalog, ModelError, ModelErrorKind, ModelRequest, Retry,
    RetryPolicy, stream_with_retry,
};
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::messages::{Message, MessageAccumulator, UsageMetadata};
use crate::runtime::agent::{AgentEvent, EventSink, ModelCallRecord, RunContext};

/// How many places of a text are tried as the beginning of an object.
const MOST_STARTS: usize = 64;

/// The models that can be asked aside, with the patience that their providers get.
#[derive(Debug, Clone)]
pub struct AsideModels {
    /// All models; the first is the default.
    pub catalog: Arc<ModelCatalog>,
    /// Their circuits, shared with everybody else who asks them.
    pub breakers: Arc<Breakers>,
    /// When a failed call is made again.
    pub retry: RetryPolicy,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// Entries to ask in turn until one answers; the default entry when empty.
    pub models: Vec<&'a str>,
    /// What the model is to be.
    pub system: &'a str,
    /// What it is to do, with the material.
    pub prompt: String,
    /// How long one model may take, retries included.
    pub limit: Duration,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The name that the journal and the token count know it by, such as `middleware:title`.
    pub caller: &'a str,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Ids.
    pub ids: &'a dyn IdSource,
    /// The run that pays, if it is part of one.
    pub sink: Option<&'a EventSink>,
}

impl<'a> Asker<'a> {
    /// A part of a run.
    pub fn within(ctx: &'a RunContext, caller: &'a str) -> Self {
        Self {
            caller,
            clock: &*ctx.clock,
            ids: &*ctx.ids,
            sink: Some(&ctx.sink),
        }
    }

    /// The same under the name of somebody else.
    #[must_use]
    pub fn called(self, caller: &'a str) -> Self {
        Self { caller, ..self }
    }

    fn tell(&self, event: impl FnOnce() -> AgentEvent) {
        if let Some(sink) = self.sink {
            sink.emit(event());
        }
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AsideAnswer {
    /// The text, without thoughts; never blank.
    pub text: String,
    /// The entry that answered.
    pub model: String,
    /// What it cost.
    pub usage: Option<UsageMetadata>,
}

impl AsideModels {
    /// Asks one model after the other until one says something. The error is the last one's.
    pub async fn ask(
        &self,
        question: &Question<'_>,
        asker: Asker<'_>,
    ) -> Result<AsideAnswer, ModelError> {
        let named = question.models.iter().map(|name| Some(*name));
        let candidates: Vec<Option<&str>> = if question.models.is_empty() {
            vec![None]
        } else {
            named.collect()
        };
        let mut asked: Vec<String> = Vec::new();
        let mut last = None;
        for name in candidates {
            let answer = match self.catalog.get_or_default(name) {
                Ok(model) if asked.contains(&model.info().name) => continue,
                Ok(model) => {
                    asked.push(model.info().name.clone());
                    self.ask_one(&*model, question, asker).await
                }
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::warn!(caller = asker.caller, %error, "a model did not answer a question of the framework");
                    asker.tell(|| AgentEvent::ModelError {
                        caller: asker.caller.to_owned(),
                        error: error.to_string(),
                    });
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| failure("", ModelErrorKind::Config, "there is no model to ask")))
    }

    async fn ask_one(
        &self,
        model: &dyn ChatModel,
        question: &Question<'_>,
        asker: Asker<'_>,
    ) -> Result<AsideAnswer, ModelError> {
        let name = model.info().name.as_str();
        let started = Instant::now();
        let message_id = asker.ids.message_id();
        asker.tell(|| AgentEvent::ModelRequest {
            caller: asker.caller.to_owned(),
            model: name.to_owned(),
            message_count: 1,
            message_id: message_id.clone(),
        });
        let request = ModelRequest {
            message_id,
            system: Some(question.system.into()),
            messages: vec![Message::human(question.prompt.as_str())],
            tools: Arc::from([]),
            thinking: false,
            reasoning_effort: None,
            overrides: Map::new(),
        };
        let listening = timeout(question.limit, self.listen(model, request, asker));
        let late = |_| {
            // The call went with its permit before it could tell.
            if !model.is_full()
                && let Ok(permit) = self.breakers.of(name).admit(asker.clock.now())
            {
                permit.failed(asker.clock.now());
            }
            Err(failure(
                name,
                ModelErrorKind::Stalled,
                "it took too long to answer",
            ))
        };
        let (message, name) = listening.await.unwrap_or_else(late)?;
        let text = visible(&message.content.text()).to_owned();
        let usage = message.usage().cloned();
        asker.tell(|| {
            AgentEvent::ModelCall(ModelCallRecord {
                call_id: asker.ids.random().to_string(),
                caller: asker.caller.to_owned(),
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
        Ok(AsideAnswer {
            text,
            model: name,
            usage,
        })
    }

    /// The answer, and the name of the model that gave it.
    async fn listen(
        &self,
        model: &dyn ChatModel,
        request: ModelRequest,
        asker: Asker<'_>,
    ) -> Result<(Message, String), ModelError> {
        let mut answer = MessageAccumulator::new(request.message_id.clone());
        let retry = Retry {
            policy: self.retry,
            breaker: Some(self.breakers.of(&model.info().name)),
            clock: asker.clock,
            jitter: &mut || f64::from(asker.ids.random().as_fields().0) / f64::from(u32::MAX),
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
                "the answer broke off",
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

/// A text without the thoughts that some models write into it, also those that never end.
pub(crate) fn visible(text: &str) -> &str {
    let text = text
        .rsplit_once("</think>")
        .map_or(text, |(_, behind)| behind);
    text.split_once("<think>")
        .map_or(text, |(before, _)| before)
        .trim()
}

/// The first object in a text that has all these keys, whatever stands around it.
pub(crate) fn json_object(text: &str, keys: &[&str]) -> Option<Value> {
    let starts = text.match_indices('{').map(|(at, _)| at).take(MOST_STARTS);
    let mut objects = starts.filter_map(|at| {
        serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<Value>()
            .next()?
            .ok()
    });
    objects.find(|object| keys.iter().all(|key| object.get(key).is_some()))
}

#[cfg(test)]
#[path = "aside_tests.rs"]
mod tests;
