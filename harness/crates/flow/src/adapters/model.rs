//! Adapter kind `model`: one call of a configured model entry without tools per turn.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_core::messages::{Message, MessageAccumulator, UsageMetadata, kwargs};
use deerflow_models::{
    Answering, AuxiliaryModels, ModelError, ModelErrorKind, ModelRequest, Retry, stream_with_retry,
    strip_thinking,
};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub use super::actor_models::{ActorModelSource, ActorModels};
use crate::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, AgentInvocation,
    AgentTurnResult, CONTRACT_VERSION, Capability, ConfigFinding, DeltaSink, ErrorCategory,
    FlowError, InvocationId, SessionContext, SessionId, TurnDelta, TurnMessage, TurnMode, TurnRole,
    TurnRuntime, TurnStatus, Usage,
};
use crate::compiled::EffectiveAgent;
use crate::structured_output::{final_text, structured_output};

/// Name of the kind.
const KIND: &str = "model";

/// Factory of the kind `model`.
pub struct ModelFactory {
    metadata: AdapterMetadata,
    models: CurrentModels,
    of_actor: Option<Arc<dyn ActorModelSource>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl fmt::Debug for ModelFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFactory").finish_non_exhaustive()
    }
}

/// Returns the models of the current configuration.
pub type CurrentModels = Arc<dyn Fn() -> AuxiliaryModels + Send + Sync>;

/// Models and sources of an adapter.
#[derive(Debug, Clone)]
struct ModelPort {
    of_actor: ActorModels,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl ModelFactory {
    async fn port(&self) -> Result<ModelPort, FlowError> {
        let of_actor = match &self.of_actor {
            Some(source) => source.models().await?,
            None => (self.models)().into(),
        };
        Ok(ModelPort {
            of_actor,
            clock: self.clock.clone(),
            ids: self.ids.clone(),
        })
    }

    /// Restricts adapters to the models of their actor. Validation permits all models.
    #[must_use]
    pub fn with_actor_models(self, source: Arc<dyn ActorModelSource>) -> Self {
        Self {
            of_actor: Some(source),
            ..self
        }
    }

    /// Creates the factory of fixed models.
    pub fn new(models: AuxiliaryModels, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self::of_current(Arc::new(move || models.clone()), clock, ids)
    }

    /// Creates the factory of models that change with the configuration. A run keeps the models
    /// with which its agents were created.
    pub fn of_current(
        models: CurrentModels,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let metadata = AdapterMetadata {
            adapter_kind: KIND.to_owned(),
            display_name: "Model call".to_owned(),
            adapter_version: env!("CARGO_PKG_VERSION").to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            supported_capabilities: vec![Capability::Streaming, Capability::StructuredOutput],
            limitations: vec!["the model gets no tools".to_owned()],
        };
        Self {
            metadata,
            models,
            of_actor: None,
            clock,
            ids,
        }
    }
}

#[async_trait]
impl AdapterFactory for ModelFactory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    fn validate_config(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        let entry = entry_name(flow_config, agent);
        let model = (self.models)().catalog.get_or_default(entry.as_deref());
        let finding = |error: ModelError| ConfigFinding {
            code: "unknown_model".to_owned(),
            key: "modelName".to_owned(),
            message: error.message,
        };
        model.err().map(finding).into_iter().collect()
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        Ok(Arc::new(ModelAdapter {
            port: self.port().await?,
            entry: entry_name(&context.flow_config, &context.agent),
        }))
    }
}

/// Returns the name of the agent's model entry: `modelName` of its configuration, else its model.
fn entry_name(flow_config: &Map<String, Value>, agent: &EffectiveAgent) -> Option<String> {
    let name = |config: &Map<String, Value>| usable(config.get("modelName")?.as_str());
    name(&agent.adapter_config)
        .or_else(|| name(flow_config))
        .or_else(|| usable(agent.model_profile.model.as_deref()))
}

fn usable(name: Option<&str>) -> Option<String> {
    name.map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// Adapter of one agent.
#[derive(Debug)]
struct ModelAdapter {
    port: ModelPort,
    /// Entry of the agent; the default entry if absent.
    entry: Option<String>,
}

#[async_trait]
impl AgentAdapter for ModelAdapter {
    async fn create_session(&self, _context: SessionContext) -> Result<SessionId, FlowError> {
        Ok(SessionId(self.port.ids.random().to_string()))
    }

    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        runtime: TurnRuntime,
        sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult {
        let deadline = async {
            match runtime.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let ended = |status, code, message| {
            let error = FlowError::new(code, ErrorCategory::Model, message).retryable(true);
            AgentTurnResult::ended(status, adapter_error(error))
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                ended(TurnStatus::Failed, "turn_failed", "the turn was cancelled")
            }
            () = deadline => {
                ended(TurnStatus::TimedOut, "turn_timeout", "the time limit of the turn passed")
            }
            answer = self.answer(&invocation, sink) => match answer {
                Ok(result) => result,
                Err(error) => AgentTurnResult::ended(TurnStatus::Failed, flow_error(&error)),
            },
        }
    }

    async fn abort(&self, _invocation: &InvocationId) -> Result<(), FlowError> {
        Ok(())
    }

    async fn dispose(&self, _session: &SessionId) -> Result<(), FlowError> {
        Ok(())
    }
}

impl ModelAdapter {
    /// Calls the model and emits its answer while it arrives. Dropping the future drops the call.
    async fn answer(
        &self,
        turn: &AgentInvocation,
        sink: &dyn DeltaSink,
    ) -> Result<AgentTurnResult, ModelError> {
        let ModelPort {
            of_actor,
            clock,
            ids,
        } = &self.port;
        let models = &of_actor.models;
        let model = models.catalog.get_or_default(self.entry_of(turn))?;
        let request = request(turn, ids.message_id());
        let mut answer = MessageAccumulator::new(request.message_id.clone());
        let retry = Retry {
            policy: models.retry,
            breaker: Some(models.breakers.of(&model.info().name)),
            clock: &**clock,
            jitter: &mut || f64::from(ids.random().as_fields().0) / f64::from(u32::MAX),
            on_retry: &mut |_| {},
        };
        let Answering { model, mut chunks } = stream_with_retry(&*model, request, retry).await?;
        let mut is_complete = false;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            let reasoning = chunk.additional_kwargs.get(kwargs::REASONING_CONTENT);
            let delta = TurnDelta {
                text: chunk.content.clone(),
                reasoning: reasoning
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            };
            if delta != TurnDelta::default() {
                sink.delta(delta);
            }
            is_complete |= chunk.chunk_position.is_some();
            answer.push(&chunk);
        }
        if !is_complete {
            return Err(failure(&model, "the answer was truncated"));
        }
        self.result(&answer.finish(), &model, turn)
    }

    /// Returns the entry of a turn: the model that the node names, else that of the agent.
    fn entry_of<'a>(&'a self, turn: &'a AgentInvocation) -> Option<&'a str> {
        let of_agent = turn.agent.model_profile.model.as_deref();
        let of_node = turn.model.as_deref().filter(|name| Some(*name) != of_agent);
        let of_actor = &self.port.of_actor;
        of_actor.allowed(of_node.or(self.entry.as_deref()))
    }

    fn result(
        &self,
        message: &Message,
        model: &str,
        turn: &AgentInvocation,
    ) -> Result<AgentTurnResult, ModelError> {
        let whole = message.content.text();
        let text = strip_thinking(&whole);
        if text.is_empty() {
            return Err(failure(model, "the answer was empty"));
        }
        let is_structured = turn.turn_mode != TurnMode::Normal || turn.expected_output.is_some();
        let structured = is_structured
            .then(|| structured_output(text, turn.turn_mode))
            .flatten();
        let reasoning = message.additional_kwargs.get(kwargs::REASONING_CONTENT);
        Ok(AgentTurnResult {
            reasoning_text: reasoning.and_then(Value::as_str).map(str::to_owned),
            usage: self.usage(message.usage(), model),
            structured_output: structured.clone(),
            ..AgentTurnResult::completed(final_text(text, structured.as_ref(), turn.turn_mode))
        })
    }

    /// Returns the tokens, and the cost if the entry has prices in US dollars.
    fn usage(&self, usage: Option<&UsageMetadata>, model: &str) -> Usage {
        let Some(usage) = usage else {
            return Usage::default();
        };
        Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
            cost_usd: self.port.of_actor.models.catalog.cost_usd(model, usage),
        }
    }
}

fn request(turn: &AgentInvocation, message_id: String) -> ModelRequest {
    let mut messages: Vec<Message> = turn.messages.iter().map(message).collect();
    if !turn.history_has_prompt() {
        messages.push(Message::human(turn.user_prompt.as_str()));
    }
    let mut overrides = Map::new();
    if let Some(temperature) = turn.temperature {
        overrides.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(max_tokens) = turn.max_tokens {
        overrides.insert("max_tokens".to_owned(), json!(max_tokens));
    }
    let system = turn.system_prompt.trim();
    ModelRequest {
        message_id,
        system: (!system.is_empty()).then(|| system.into()),
        messages,
        tools: Arc::from([]),
        thinking: false,
        reasoning_effort: None,
        overrides,
    }
}

fn message(turn: &TurnMessage) -> Message {
    match turn.role {
        TurnRole::User => Message::human(turn.content.as_str()),
        TurnRole::Assistant => Message::ai(turn.content.as_str()),
    }
}

fn failure(model: &str, message: &str) -> ModelError {
    ModelError {
        model: model.to_owned(),
        kind: ModelErrorKind::Transient,
        message: message.to_owned(),
        status: None,
        retry_after: None,
    }
}

/// Returns the error of a turn whose model call failed.
fn flow_error(error: &ModelError) -> FlowError {
    let mut details = Map::new();
    details.insert("reason".to_owned(), json!(error.kind.as_str()));
    if let Some(status) = error.status {
        details.insert("httpStatus".to_owned(), json!(status));
    }
    if let Some(wait) = error.retry_after {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        details.insert("retryAfterMs".to_owned(), json!(millis));
    }
    let error = FlowError::new("turn_failed", ErrorCategory::Model, error.to_string())
        .retryable(error.kind.is_retriable());
    FlowError {
        details,
        ..adapter_error(error)
    }
}

fn adapter_error(error: FlowError) -> FlowError {
    FlowError {
        adapter_kind: Some(KIND.to_owned()),
        ..error
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
