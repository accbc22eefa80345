//! The adapter under test and the calls that the suite makes.

use std::sync::Arc;

use deerflow_core::actor_context::ActorContext;
use parking_lot::Mutex;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::adapter::{
    AdapterContext, AdapterFactory, AgentAdapter, AgentInvocation, AgentTurnResult, DeltaSink,
    InvocationId, SessionContext, SessionId, TurnDelta, TurnMode, TurnRuntime,
};
use crate::compiled::EffectiveAgent;

/// An adapter kind with the agent and the prompts that the suite uses.
#[derive(Debug, Clone)]
pub struct AdapterSubject {
    /// Factory of the kind.
    pub factory: Arc<dyn AdapterFactory>,
    /// Agent with a valid configuration.
    pub agent: Arc<EffectiveAgent>,
    /// Prompt of a turn that completes with text.
    pub succeeding_prompt: String,
    /// Node id of a turn that completes with text.
    pub succeeding_node: String,
    /// Prompt of a turn that fails at the other side.
    pub failing_prompt: String,
    /// Node id of a turn that fails at the other side.
    pub failing_node: String,
    /// Facilities of the run that the turns use.
    pub runtime: TurnRuntime,
}

/// Deltas of a turn.
#[derive(Debug, Default)]
pub struct CollectedDeltas(Mutex<String>);

impl CollectedDeltas {
    /// Returns the text so far.
    pub fn text(&self) -> String {
        self.0.lock().clone()
    }
}

impl DeltaSink for CollectedDeltas {
    fn delta(&self, delta: TurnDelta) {
        self.0.lock().push_str(&delta.text);
    }
}

impl AdapterSubject {
    pub(super) async fn adapter(&self) -> Arc<dyn AgentAdapter> {
        let context = AdapterContext {
            flow_name: "suite".to_owned(),
            flow_config: Map::new(),
            agent: self.agent.clone(),
            actor: ActorContext::user("suite"),
        };
        match self.factory.create(context).await {
            Ok(adapter) => adapter,
            Err(error) => panic!("the adapter cannot be built: {error}"),
        }
    }

    pub(super) async fn session(&self, adapter: &dyn AgentAdapter) -> SessionId {
        let context = SessionContext {
            run_id: "run".to_owned(),
            flow_name: "suite".to_owned(),
            agent: self.agent.clone(),
            model: self.agent.model_profile.model.clone(),
            temperature: None,
        };
        match adapter.create_session(context).await {
            Ok(session) => session,
            Err(error) => panic!("a session cannot be created: {error}"),
        }
    }

    pub(super) fn invocation(&self, session: &SessionId, fails: bool, id: &str) -> AgentInvocation {
        let (node, prompt) = if fails {
            (&self.failing_node, &self.failing_prompt)
        } else {
            (&self.succeeding_node, &self.succeeding_prompt)
        };
        AgentInvocation {
            invocation_id: InvocationId(id.to_owned()),
            session_id: session.clone(),
            run_id: "run".to_owned(),
            flow_name: "suite".to_owned(),
            node_id: node.clone(),
            visit: 1,
            agent: self.agent.clone(),
            turn_mode: TurnMode::Normal,
            system_prompt: String::new(),
            user_prompt: prompt.clone(),
            segments: Arc::from([]),
            input: Map::new(),
            messages: Arc::from([]),
            expected_output: None,
            model: self.agent.model_profile.model.clone(),
            temperature: None,
            max_tokens: None,
            answer: None,
        }
    }

    pub(super) async fn turn(
        &self,
        adapter: &dyn AgentAdapter,
        invocation: AgentInvocation,
        deltas: &CollectedDeltas,
    ) -> AgentTurnResult {
        let (runtime, cancel) = (self.runtime.clone(), CancellationToken::new());
        adapter.run_turn(invocation, runtime, deltas, cancel).await
    }
}
