//! Adapter kind `acp`: a turn is a session with an ACP agent, as tool `invoke_acp_agent` runs it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, AgentInvocation,
    AgentTurnResult, CONTRACT_VERSION, Capability, ConfigFinding, DeltaSink, ErrorCategory,
    FlowError, InvocationId, SessionContext, SessionId, TurnEffect, TurnMode, TurnRole,
    TurnRuntime, TurnStatus,
};
use super::compiled::EffectiveAgent;
use super::structured_output::{final_text, structured_output};
use crate::acp::InvokeAcpAgent;
use crate::ids::IdSource;

/// Name of the kind.
const KIND: &str = "acp";
/// Key of the configuration that names the entry of `acp_agents`.
const AGENT: &str = "agent";

/// Returns the ACP agents of the current configuration; `None` if it has none.
pub type CurrentAcpAgents = Arc<dyn Fn() -> Option<Arc<InvokeAcpAgent>> + Send + Sync>;

/// Factory of the kind `acp`.
pub struct AcpFactory {
    metadata: AdapterMetadata,
    agents: CurrentAcpAgents,
    ids: Arc<dyn IdSource>,
}

impl fmt::Debug for AcpFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpFactory").finish_non_exhaustive()
    }
}

impl AcpFactory {
    /// Creates the factory of these agents. `ids` creates the ids of sessions.
    pub fn new(agents: Arc<InvokeAcpAgent>, ids: Arc<dyn IdSource>) -> Self {
        Self::of_current(Arc::new(move || Some(agents.clone())), ids)
    }

    /// Creates the factory of agents that change with the configuration. A run keeps the agents
    /// with which its adapters were created.
    pub fn of_current(agents: CurrentAcpAgents, ids: Arc<dyn IdSource>) -> Self {
        let metadata = AdapterMetadata {
            adapter_kind: KIND.to_owned(),
            display_name: "ACP agent".to_owned(),
            adapter_version: env!("CARGO_PKG_VERSION").to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            supported_capabilities: vec![Capability::StructuredOutput, Capability::ToolCalls],
            limitations: vec![
                "needs a run of the runtime".to_owned(),
                "reports no tokens".to_owned(),
            ],
        };
        Self {
            metadata,
            agents,
            ids,
        }
    }

    /// Returns the agents and the entry of an agent, or the problem of its configuration.
    fn entry(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Result<(Arc<InvokeAcpAgent>, String), ConfigFinding> {
        let finding = |code: &str, message: String| ConfigFinding {
            code: code.to_owned(),
            key: AGENT.to_owned(),
            message,
        };
        let value = agent
            .adapter_config
            .get(AGENT)
            .or_else(|| flow_config.get(AGENT));
        let name = value.and_then(Value::as_str).map_or("", str::trim);
        let Some(agents) = (self.agents)() else {
            let message = "the server has no ACP agents; add one to acp_agents in config.yaml";
            return Err(finding("unknown_agent", message.to_owned()));
        };
        let known: Vec<&str> = agents.names().collect();
        let listed = known.join(", ");
        if name.is_empty() {
            let message = format!("name an entry of acp_agents in {AGENT}: {listed}");
            return Err(finding("missing_agent", message));
        }
        if !known.contains(&name) {
            let message = format!("acp_agents has no entry {name:?}; it has: {listed}");
            return Err(finding("unknown_agent", message));
        }
        let name = name.to_owned();
        Ok((agents, name))
    }
}

#[async_trait]
impl AdapterFactory for AcpFactory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    /// The limits of the agent's entry apply.
    fn has_default_turn_limit(&self) -> bool {
        false
    }

    fn validate_config(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        self.entry(flow_config, agent).err().into_iter().collect()
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        let entry = self.entry(&context.flow_config, &context.agent);
        let (agents, entry) = entry.map_err(|finding| {
            let category = ErrorCategory::Validation;
            FlowError::new("adapter_config_invalid", category, finding.message)
        })?;
        Ok(Arc::new(AcpAdapter {
            entry,
            agents,
            ids: self.ids.clone(),
        }))
    }
}

/// Adapter of one agent. Each turn is a session of its own, which gets the earlier turns as text.
#[derive(Debug)]
struct AcpAdapter {
    entry: String,
    agents: Arc<InvokeAcpAgent>,
    ids: Arc<dyn IdSource>,
}

#[async_trait]
impl AgentAdapter for AcpAdapter {
    async fn create_session(&self, _context: SessionContext) -> Result<SessionId, FlowError> {
        Ok(SessionId(self.ids.random().to_string()))
    }

    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        runtime: TurnRuntime,
        _sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult {
        let Some(context) = &runtime.context else {
            let message = "kind acp needs the files of a thread, and this flow runs without the \
                           runtime; run it on a server or client";
            return failed("runtime_missing", message.to_owned());
        };
        let prompt = prompt(&invocation);
        let work = self.agents.run(&self.entry, &prompt, context);
        let deadline = async {
            match runtime.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => failed("turn_failed", "the turn was cancelled".to_owned()),
            () = deadline => AgentTurnResult {
                status: TurnStatus::TimedOut,
                ..failed("turn_timeout", "the time limit of the turn passed".to_owned())
            },
            ended = work => match ended {
                Ok(text) => completed(&text, invocation.turn_mode),
                Err(error) => failed("turn_failed", error.to_string()),
            },
        }
    }

    /// Does nothing: dropping the future of a turn terminates its program.
    async fn abort(&self, _invocation: &InvocationId) -> Result<(), FlowError> {
        Ok(())
    }

    async fn dispose(&self, _session: &SessionId) -> Result<(), FlowError> {
        Ok(())
    }

    fn effect(&self) -> TurnEffect {
        TurnEffect::Unsafe
    }
}

/// Returns the whole task as text: an ACP agent receives nothing else.
fn prompt(turn: &AgentInvocation) -> String {
    let repeated = usize::from(turn.history_has_prompt());
    let former = turn.messages[..turn.messages.len() - repeated].iter();
    let former = former.map(|message| match message.role {
        TurnRole::User => format!("Earlier task:\n{}", message.content),
        TurnRole::Assistant => format!("Your earlier answer:\n{}", message.content),
    });
    let expected = turn.expected_output.as_ref();
    let instruction = expected.map(|expected| {
        let schema = expected.schema.as_ref().map(Value::to_string);
        let schema = schema.map_or_else(String::new, |schema| format!(" of this schema: {schema}"));
        format!(
            "End your answer with one JSON object, the {}{schema}.",
            expected.schema_ref
        )
    });
    let parts = [turn.system_prompt.clone()].into_iter().chain(former);
    let parts = parts.chain([turn.user_prompt.clone()]).chain(instruction);
    let parts: Vec<String> = parts.filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

fn completed(text: &str, mode: TurnMode) -> AgentTurnResult {
    let structured = (mode != TurnMode::Normal)
        .then(|| structured_output(text, mode))
        .flatten();
    AgentTurnResult {
        structured_output: structured.clone(),
        ..AgentTurnResult::completed(final_text(text, structured.as_ref(), mode))
    }
}

fn failed(code: &str, message: String) -> AgentTurnResult {
    let error = FlowError {
        adapter_kind: Some(KIND.to_owned()),
        ..FlowError::new(code, ErrorCategory::Adapter, message)
    };
    AgentTurnResult::ended(TurnStatus::Failed, error)
}

#[cfg(test)]
#[path = "acp_agent_tests.rs"]
mod tests;
