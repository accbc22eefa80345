//! Innermost handler of a model call: calls the provider, emits its tokens and accumulates them to
//! an answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::assembly::Assembly;
use crate::ids::IdSource;
use crate::messages::{Message, MessageAccumulator};
use crate::middlewares::ModelHandler;
use crate::middlewares::summarization::View;
use crate::models::{
    ModelError, ModelErrorKind, ModelRequest, Retry, ToolSchema, stream_with_retry,
};
use crate::runtime::agent::{AgentEvent, MessageMeta, ModelCallRecord, RunContext};
use crate::state::ThreadState;

/// One call of the agent's own model.
#[derive(Debug)]
pub(super) struct ProviderCall<'a> {
    pub(super) assembly: &'a Assembly,
    /// Metadata shared by all chunks of the call.
    pub(super) meta: Arc<MessageMeta>,
    /// Id of the message whose tokens were emitted completely.
    streamed: Mutex<Option<String>>,
    /// Partial answers that were emitted before the stream was interrupted.
    interrupted: Mutex<Vec<ModelCallRecord>>,
}

impl<'a> ProviderCall<'a> {
    pub(super) fn new(assembly: &'a Assembly, meta: Arc<MessageMeta>) -> Self {
        Self {
            assembly,
            meta,
            streamed: Mutex::default(),
            interrupted: Mutex::default(),
        }
    }

    /// `true` if the tokens of `message` were emitted; `false` for a message that a middleware
    /// substituted for the model's answer.
    pub(super) fn has_streamed(&self, message: &Message) -> bool {
        self.streamed.lock().is_some() && *self.streamed.lock() == message.id
    }

    /// Removes and returns the partial answers that were emitted before `answer`. Each becomes a
    /// separate message, unless `answer` completed it.
    pub(super) fn take_interrupted(&self, answer: &Message) -> Vec<ModelCallRecord> {
        let was_completed =
            |record: &ModelCallRecord| self.has_streamed(answer) && record.message.id == answer.id;
        let mut interrupted = std::mem::take(&mut *self.interrupted.lock());
        interrupted.retain(|record| !was_completed(record));
        interrupted
    }

    /// Builds the journal record of an answer that a middleware substituted for the model's.
    pub(super) fn record_substitute(&self, answer: &Message, ctx: &RunContext) -> ModelCallRecord {
        self.record(self.primary_name(), answer.clone(), Instant::now(), ctx)
    }

    /// Returns the name of the first model entry that is called.
    fn primary_name(&self) -> String {
        self.assembly.model.info().name.clone()
    }

    fn record(
        &self,
        model: String,
        message: Message,
        started: Instant,
        ctx: &RunContext,
    ) -> ModelCallRecord {
        ModelCallRecord {
            call_id: ctx.ids.random().to_string(),
            caller: self.assembly.caller.clone(),
            model,
            usage: message.usage().cloned(),
            message,
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Assembly {
    /// Returns the schemas of the tools that the model may call in this state.
    fn offered(&self, state: &ThreadState) -> Arc<[ToolSchema]> {
        let Some(deferred) = self.tools.deferred() else {
            return self.schemas.clone();
        };
        let promoted = deferred.promoted(state);
        self.schemas
            .iter()
            .filter(|schema| promoted.contains(&schema.name) || !deferred.has(&schema.name))
            .cloned()
            .collect()
    }

    /// Builds the model request for `state`.
    pub(super) fn request(&self, state: &ThreadState, ctx: &RunContext) -> ModelRequest {
        ModelRequest {
            message_id: ctx.ids.message_id(),
            system: self.system.clone(),
            messages: View::of(state).messages(),
            tools: self.offered(state),
            thinking: self.settings.thinking,
            reasoning_effort: self.settings.reasoning_effort.clone(),
            overrides: self.settings.overrides.clone(),
        }
    }
}

impl ModelHandler for ProviderCall<'_> {
    fn call<'a>(
        &'a self,
        request: ModelRequest,
        ctx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Message, ModelError>> {
        self.ask(request, ctx).boxed()
    }
}

impl ProviderCall<'_> {
    async fn ask(&self, request: ModelRequest, ctx: &RunContext) -> Result<Message, ModelError> {
        let caller = self.assembly.caller.clone();
        let message_id = request.message_id.clone();
        ctx.sink.emit(AgentEvent::ModelRequest {
            caller,
            model: self.primary_name(),
            message_count: request.messages.len(),
            message_id,
        });
        let started = Instant::now();
        let mut answer = MessageAccumulator::new(request.message_id.clone());
        let mut model = self.primary_name();
        match self
            .stream_answer(request, &mut answer, &mut model, ctx)
            .await
        {
            Ok(()) => {
                let message = answer.finish();
                self.streamed.lock().clone_from(&message.id);
                ctx.sink.emit(AgentEvent::ModelCall(self.record(
                    model,
                    message.clone(),
                    started,
                    ctx,
                )));
                Ok(message)
            }
            Err(error) => {
                let partial = answer
                    .finish_partial()
                    .map(|message| self.record(model, message, started, ctx));
                self.interrupted.lock().extend(partial);
                ctx.sink.emit(AgentEvent::ModelError {
                    caller: self.assembly.caller.clone(),
                    error: error.to_string(),
                });
                Err(error)
            }
        }
    }

    /// Streams the answer and emits its tokens. Sets `model` to the name of the entry that answers.
    async fn stream_answer(
        &self,
        request: ModelRequest,
        answer: &mut MessageAccumulator,
        model: &mut String,
        ctx: &RunContext,
    ) -> Result<(), ModelError> {
        let mut complete = false;
        let retry = Retry {
            policy: self.assembly.patience.policy,
            breaker: self.assembly.patience.breaker.clone(),
            clock: &*ctx.clock,
            jitter: &mut || random_fraction(&*ctx.ids),
            on_retry: &mut |notice| ctx.sink.emit(AgentEvent::Custom(notice.event())),
        };
        // Boxed, so that its memory is free while the answer is read.
        let answering = Box::pin(stream_with_retry(&*self.assembly.model, request, retry));
        let answering = answering.await?;
        *model = answering.model;
        let mut chunks = answering.chunks;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            answer.push(&chunk);
            complete |= chunk.chunk_position.is_some();
            ctx.sink
                .emit(AgentEvent::Token(Box::new(chunk), self.meta.clone()));
        }
        if complete {
            return Ok(());
        }
        Err(ModelError {
            model: model.clone(),
            kind: ModelErrorKind::Transient,
            message: "the provider's stream ended before the answer was complete".to_owned(),
            status: None,
            retry_after: None,
        })
    }
}

/// Returns a random number from 0 to 1.
fn random_fraction(ids: &dyn IdSource) -> f64 {
    f64::from(ids.random().as_fields().0) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crate::agents::AgentBuilder;
    use crate::agents::test_support::{ReplayModel, Reply, ask};
    use crate::models::{ChatModel, ModelInfo, ModelStream};

    /// Model that fails permanently and has one fallback.
    #[derive(Debug)]
    struct QuotaExceeded(ModelInfo, [Arc<dyn ChatModel>; 1]);

    #[async_trait]
    impl ChatModel for QuotaExceeded {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
            &self.1
        }

        async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
            let message = "no money".to_owned();
            Err(ModelError {
                model: "broke".to_owned(),
                kind: ModelErrorKind::Quota,
                message,
                status: None,
                retry_after: None,
            })
        }
    }

    #[tokio::test]
    async fn answer_is_attributed_to_the_entry_that_gave_it() {
        let info = ModelInfo {
            name: "broke".to_owned(),
            model: "b".to_owned(),
            provider: "b".to_owned(),
            supports_vision: false,
        };
        let exhausted = QuotaExceeded(info, [ReplayModel::new([Reply::Say("here")])]);
        let output = ask(&AgentBuilder::new(Arc::new(exhausted)).build(), "hi").await;
        let entries = output.events.iter().filter_map(|event| match event {
            AgentEvent::ModelRequest { model, .. } => Some(("asked", model.as_str())),
            AgentEvent::ModelCall(call) => Some(("answered", call.model.as_str())),
            _ => None,
        });
        assert_eq!(
            entries.collect::<Vec<_>>(),
            [("asked", "broke"), ("answered", "replay")]
        );
    }
}
