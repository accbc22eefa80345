//! The innermost end of a model call: asks the provider, passes its tokens on, and adds them up to the answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::agent::Assembly;
use crate::ids::IdSource;
use crate::messages::{Message, MessageAccumulator};
use crate::middlewares::ModelEnd;
use crate::middlewares::summarization::View;
use crate::models::{
    ModelError, ModelErrorKind, ModelRequest, Retry, ToolSchema, stream_with_retry,
};
use crate::runtime::agent::{AgentEvent, MessageMeta, ModelCallRecord, RunContext};
use crate::state::ThreadState;

/// Asks the agent's own model.
#[derive(Debug)]
pub(super) struct Provider<'a> {
    pub(super) parts: &'a Assembly,
    /// Shared by all fragments of the call.
    pub(super) meta: Arc<MessageMeta>,
    /// The message whose tokens were passed on to its end.
    streamed: Mutex<Option<String>>,
    /// What viewers have read of answers that broke off.
    broken: Mutex<Vec<ModelCallRecord>>,
}

impl<'a> Provider<'a> {
    pub(super) fn new(parts: &'a Assembly, meta: Arc<MessageMeta>) -> Self {
        Self {
            parts,
            meta,
            streamed: Mutex::default(),
            broken: Mutex::default(),
        }
    }

    /// Whether viewers have had `message` as tokens; what a middleware says in the model's place they have not.
    pub(super) fn has_streamed(&self, message: &Message) -> bool {
        self.streamed.lock().is_some() && *self.streamed.lock() == message.id
    }

    /// Takes what was read of answers that broke off before `answer`: each stays a message of its own, unless the same answer
    /// came to its end after all.
    pub(super) fn take_broken(&self, answer: &Message) -> Vec<ModelCallRecord> {
        let mended =
            |record: &ModelCallRecord| self.has_streamed(answer) && record.message.id == answer.id;
        let mut broken = std::mem::take(&mut *self.broken.lock());
        broken.retain(|record| !mended(record));
        broken
    }

    /// What the journal learns of an answer that a middleware gave in the model's place.
    pub(super) fn stand_in(&self, answer: &Message, ctx: &RunContext) -> ModelCallRecord {
        self.record(self.own_name(), answer.clone(), Instant::now(), ctx)
    }

    /// The entry that is asked first.
    fn own_name(&self) -> String {
        self.parts.model.info().name.clone()
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
            caller: self.parts.caller.clone(),
            model,
            usage: message.usage().cloned(),
            message,
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Assembly {
    /// The tools that the model is told of.
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

    /// The question that `state` puts to the model.
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

impl ModelEnd for Provider<'_> {
    fn call<'a>(
        &'a self,
        request: ModelRequest,
        ctx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Message, ModelError>> {
        async move {
            let answer = self.ask(request, ctx).await;
            if let Err(error) = &answer {
                ctx.sink.emit(AgentEvent::ModelError {
                    caller: self.parts.caller.clone(),
                    error: error.to_string(),
                });
            }
            answer
        }
        .boxed()
    }
}

impl Provider<'_> {
    async fn ask(&self, request: ModelRequest, ctx: &RunContext) -> Result<Message, ModelError> {
        let caller = self.parts.caller.clone();
        let message_id = request.message_id.clone();
        ctx.sink.emit(AgentEvent::ModelRequest {
            caller,
            model: self.own_name(),
            message_count: request.messages.len(),
            message_id,
        });
        let started = Instant::now();
        let mut answer = MessageAccumulator::new(request.message_id.clone());
        let mut model = self.own_name();
        match self.listen(request, &mut answer, &mut model, ctx).await {
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
                let read = answer
                    .finish_partial()
                    .map(|message| self.record(model, message, started, ctx));
                self.broken.lock().extend(read);
                Err(error)
            }
        }
    }

    /// Passes the tokens of the answer on, to its end. `model` becomes the name of the entry that answers.
    async fn listen(
        &self,
        request: ModelRequest,
        answer: &mut MessageAccumulator,
        model: &mut String,
        ctx: &RunContext,
    ) -> Result<(), ModelError> {
        let mut whole = false;
        let retry = Retry {
            policy: self.parts.patience.policy,
            breaker: self.parts.patience.breaker.clone(),
            clock: &*ctx.clock,
            jitter: &mut || draw(&*ctx.ids),
            on_retry: &mut |notice| ctx.sink.emit(AgentEvent::Custom(notice.event())),
        };
        let answering = stream_with_retry(&*self.parts.model, request, retry).await?;
        *model = answering.model;
        let mut chunks = answering.chunks;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            answer.push(&chunk);
            whole |= chunk.chunk_position.is_some();
            ctx.sink
                .emit(AgentEvent::Token(Box::new(chunk), self.meta.clone()));
        }
        if whole {
            return Ok(());
        }
        Err(ModelError {
            model: model.clone(),
            kind: ModelErrorKind::Transient,
            message: "the answer broke off before its end".to_owned(),
            status: None,
            retry_after: None,
        })
    }
}

/// A number from 0 to 1.
fn draw(ids: &dyn IdSource) -> f64 {
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

    /// Fails for good; others are behind it.
    #[derive(Debug)]
    struct Broke(ModelInfo, [Arc<dyn ChatModel>; 1]);

    #[async_trait]
    impl ChatModel for Broke {
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
    async fn an_answer_is_booked_on_the_entry_that_gave_it() {
        let info = ModelInfo {
            name: "broke".to_owned(),
            model: "b".to_owned(),
            provider: "b".to_owned(),
            supports_vision: false,
        };
        let broke = Broke(info, [ReplayModel::new([Reply::Say("here")])]);
        let said = ask(&AgentBuilder::new(Arc::new(broke)).build(), "hi").await;
        let booked = said.events.iter().filter_map(|event| match event {
            AgentEvent::ModelRequest { model, .. } => Some(("asked", model.as_str())),
            AgentEvent::ModelCall(call) => Some(("answered", call.model.as_str())),
            _ => None,
        });
        assert_eq!(
            booked.collect::<Vec<_>>(),
            [("asked", "broke"), ("answered", "replay")]
        );
    }
}
