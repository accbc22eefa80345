//! Adapters of kind `pi-mono` for tests, and the JSON form of their results.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::SystemClock;
use deerflow_core::config::Variables;
use deerflow_core::ids::SeededIds;
use deerflow_core::net::Lookup;
use deerflow_flow::adapter::{
    AdapterContext, AgentInvocation, AgentTurnResult, DeltaSink, InvocationId, SessionContext,
    SessionId, TurnDelta, TurnMode,
};
use deerflow_flow::adapters::pi_mono::{NoSecrets, PiMonoFactory, PiMonoOptions, PiMonoPorts};
use deerflow_flow::compiled::EffectiveAgent;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// Resolver by which every name is this machine.
#[derive(Debug)]
pub(crate) struct ThisMachine;

#[async_trait]
impl Lookup for ThisMachine {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        vec![[127, 0, 0, 1].into()]
    }
}

/// Creates a factory whose names are this machine.
pub(crate) fn factory(options: PiMonoOptions) -> PiMonoFactory {
    PiMonoFactory::new(PiMonoPorts {
        options,
        variables: Variables::default(),
        secrets: Arc::new(NoSecrets),
        lookup: Arc::new(ThisMachine),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SeededIds::new(1)),
    })
    .unwrap()
}

/// Creates an agent of this configuration.
pub(crate) fn agent(config: Value) -> Arc<EffectiveAgent> {
    Arc::new(EffectiveAgent {
        agent_id: "a1".to_owned(),
        adapter_kind: "pi-mono".to_owned(),
        model_profile: Default::default(),
        tool_policy: Default::default(),
        memory_policy: Default::default(),
        subagent_policy: Default::default(),
        timeouts: Default::default(),
        budgets: Default::default(),
        adapter_config: object(config),
        output_kind: None,
        turn_mode: None,
        tools: Vec::new(),
        asset: None,
    })
}

/// Returns an object, empty for any other value.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Creates what a factory gets.
pub(crate) fn adapter_context(agent: &Arc<EffectiveAgent>) -> AdapterContext {
    AdapterContext {
        flow_name: "F".to_owned(),
        flow_config: Map::new(),
        agent: agent.clone(),
        actor: ActorContext::user("u"),
    }
}

/// Creates what a session is created from.
pub(crate) fn session_context(agent: &Arc<EffectiveAgent>) -> SessionContext {
    SessionContext {
        run_id: "r1".to_owned(),
        flow_name: "F".to_owned(),
        agent: agent.clone(),
        model: None,
        temperature: None,
    }
}

/// Creates a turn.
pub(crate) fn invocation(
    agent: &Arc<EffectiveAgent>,
    session: SessionId,
    mode: TurnMode,
) -> AgentInvocation {
    AgentInvocation {
        invocation_id: InvocationId("inv-1".to_owned()),
        session_id: session,
        run_id: "r1".to_owned(),
        flow_name: "F".to_owned(),
        node_id: "n1".to_owned(),
        visit: 1,
        agent: agent.clone(),
        turn_mode: mode,
        system_prompt: String::new(),
        user_prompt: "U".to_owned(),
        segments: Arc::from([]),
        input: object(json!({"userPrompt": "U", "_upstreamTraces": ["trace"]})),
        messages: Arc::from([]),
        expected_output: None,
        model: None,
        temperature: None,
        max_tokens: None,
        answer: None,
    }
}

/// Sink that collects fragments.
#[derive(Debug, Default)]
pub(crate) struct Deltas(Mutex<Vec<TurnDelta>>);

impl DeltaSink for Deltas {
    fn delta(&self, delta: TurnDelta) {
        self.0.lock().push(delta);
    }
}

impl Deltas {
    /// Returns the fragments so far.
    pub(crate) fn all(&self) -> Vec<TurnDelta> {
        self.0.lock().clone()
    }
}

/// Returns the JSON form of a result, without empty fields. Warnings are their codes.
pub(crate) fn result_json(result: &AgentTurnResult) -> Value {
    let mut json = json!({
        "status": result.status.as_str(),
        "finalText": result.final_text,
        "structuredOutput": result.structured_output,
        "reasoningText": result.reasoning_text,
        "toolCalls": result.tool_calls,
        "artifacts": result.artifacts,
        "usage": result.usage,
        "warnings": result.warnings.iter().map(|warning| &warning.code).collect::<Vec<_>>(),
        "error": result.error,
    });
    if let Value::Object(fields) = &mut json {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    json
}
