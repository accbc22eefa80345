//! Adapter `fake`: scripted results for tests, demonstrations and dry runs. No network, no cost.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, AgentInvocation,
    AgentTurnResult, CONTRACT_VERSION, Capability, DeltaSink, FlowError, InvocationId,
    SessionContext, SessionId, TurnDelta, TurnMode, TurnRuntime, TurnStatus, Usage,
};

/// Scripted result of a turn.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScriptedTurn {
    /// Final text; `node/mode/visit` if absent.
    pub text: Option<String>,
    /// Structured output.
    pub structured: Option<Value>,
    /// Status; completed if absent.
    pub status: Option<TurnStatus>,
    /// Error.
    pub error: Option<ScriptedError>,
    /// Tokens and cost.
    pub usage: Option<Usage>,
    /// Question of an interrupted turn.
    pub interrupt: Option<Value>,
    /// Proposal of delegation.
    pub delegation_proposal: Option<serde_json::Map<String, Value>>,
    /// Texts that the turn streams before its result.
    pub deltas: Vec<String>,
    /// Never returns, so that a limit or a cancel ends the turn.
    pub hang: bool,
    /// Panics instead of returning.
    pub panic: bool,
}

/// Scripted error; absent fields have defaults.
#[derive(Debug, Clone, Deserialize)]
pub struct ScriptedError {
    /// Code.
    pub code: String,
    /// Message.
    #[serde(default)]
    pub message: String,
    /// Category.
    #[serde(default)]
    pub category: Option<crate::adapter::ErrorCategory>,
    /// `true` if a repetition may succeed.
    #[serde(default)]
    pub retryable: bool,
    /// Facts.
    #[serde(default)]
    pub details: serde_json::Map<String, Value>,
}

/// Call that a fake adapter received.
#[derive(Debug, Clone)]
pub enum FakeCall {
    /// A session was created for an agent.
    Session(String, SessionId),
    /// A turn began.
    Turn(Box<AgentInvocation>),
    /// A turn was aborted.
    Abort(InvocationId),
    /// A session was disposed.
    Dispose(SessionId),
}

/// Factory of fake adapters. Its adapters share a script and a record of calls.
#[derive(Debug, Clone)]
pub struct FakeFactory {
    metadata: AdapterMetadata,
    shared: Arc<FakeShared>,
}

#[derive(Debug, Default)]
struct FakeShared {
    script: Mutex<HashMap<String, Vec<ScriptedTurn>>>,
    /// `None`: calls are not recorded.
    calls: Option<Mutex<Vec<FakeCall>>>,
    /// Evaluations pass, so that loops end.
    passes_evaluations: bool,
}

impl FakeFactory {
    /// Creates a factory of this kind whose adapters record their calls. `script` has the results
    /// of each node's turns in order; later turns have the default result.
    pub fn scripted(kind: &str, script: HashMap<String, Vec<ScriptedTurn>>) -> Self {
        let shared = FakeShared {
            script: Mutex::new(script),
            calls: Some(Mutex::default()),
            passes_evaluations: false,
        };
        Self::new(kind, shared)
    }

    /// Creates a factory for dry runs: every evaluation passes.
    pub fn dry_run(kind: &str) -> Self {
        Self::new(
            kind,
            FakeShared {
                passes_evaluations: true,
                ..FakeShared::default()
            },
        )
    }

    /// Creates a factory whose adapters answer `node/mode/visit` and record nothing.
    pub fn plain(kind: &str) -> Self {
        Self::new(kind, FakeShared::default())
    }

    fn new(kind: &str, shared: FakeShared) -> Self {
        let metadata = AdapterMetadata {
            adapter_kind: kind.to_owned(),
            display_name: "Fake".to_owned(),
            adapter_version: env!("CARGO_PKG_VERSION").to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            supported_capabilities: vec![
                Capability::Streaming,
                Capability::StructuredOutput,
                Capability::MultiTurnSession,
                Capability::InterruptResume,
            ],
            limitations: vec!["answers from a script".to_owned()],
        };
        Self {
            metadata,
            shared: Arc::new(shared),
        }
    }

    /// Returns a factory of another kind with the same script and record.
    #[must_use]
    pub fn under_kind(&self, kind: &str) -> Self {
        let mut factory = self.clone();
        kind.clone_into(&mut factory.metadata.adapter_kind);
        factory
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<FakeCall> {
        self.shared
            .calls
            .as_ref()
            .map(|calls| calls.lock().clone())
            .unwrap_or_default()
    }
}

#[async_trait]
impl AdapterFactory for FakeFactory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        let adapter = FakeAdapter {
            agent: context.agent.agent_id.clone(),
            shared: self.shared.clone(),
            sessions: Mutex::new(0),
        };
        Ok(Arc::new(adapter))
    }
}

#[derive(Debug)]
struct FakeAdapter {
    agent: String,
    shared: Arc<FakeShared>,
    sessions: Mutex<u64>,
}

impl FakeAdapter {
    fn record(&self, call: impl FnOnce() -> FakeCall) {
        if let Some(calls) = &self.shared.calls {
            calls.lock().push(call());
        }
    }

    fn scripted(&self, node: &str) -> ScriptedTurn {
        let mut script = self.shared.script.lock();
        match script.get_mut(node) {
            Some(turns) if !turns.is_empty() => turns.remove(0),
            _ => ScriptedTurn::default(),
        }
    }
}

#[async_trait]
impl AgentAdapter for FakeAdapter {
    async fn create_session(&self, _: SessionContext) -> Result<SessionId, FlowError> {
        let number = {
            let mut sessions = self.sessions.lock();
            *sessions += 1;
            *sessions
        };
        let id = SessionId(format!("{}-{number}", self.agent));
        self.record(|| FakeCall::Session(self.agent.clone(), id.clone()));
        Ok(id)
    }

    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        _: TurnRuntime,
        sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult {
        self.record(|| FakeCall::Turn(Box::new(invocation.clone())));
        if cancel.is_cancelled() {
            return std::future::pending().await;
        }
        let turn = self.scripted(&invocation.node_id);
        for text in &turn.deltas {
            sink.delta(TurnDelta {
                text: text.clone(),
                reasoning: String::new(),
            });
        }
        assert!(!turn.panic, "the script demands a panic");
        if turn.hang {
            return std::future::pending().await;
        }
        self.result(&invocation, turn)
    }

    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError> {
        self.record(|| FakeCall::Abort(invocation.clone()));
        Ok(())
    }

    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError> {
        self.record(|| FakeCall::Dispose(session.clone()));
        Ok(())
    }
}

impl FakeAdapter {
    fn result(&self, invocation: &AgentInvocation, turn: ScriptedTurn) -> AgentTurnResult {
        let AgentInvocation {
            node_id,
            turn_mode,
            visit,
            ..
        } = invocation;
        let status = turn.status.unwrap_or(TurnStatus::Completed);
        let interrupt = turn.interrupt.filter(|_| invocation.answer.is_none());
        let is_answered = status == TurnStatus::Interrupted && invocation.answer.is_some();
        let text = turn
            .text
            .unwrap_or_else(|| format!("{node_id}/{}/{visit}", turn_mode.as_str()));
        let passes = self.shared.passes_evaluations && *turn_mode == TurnMode::Evaluate;
        let pass = || json!({"score": 1, "canComplete": true, "reason": text});
        let error = turn.error.map(|error| FlowError {
            details: error.details,
            ..FlowError::new(
                error.code,
                error
                    .category
                    .unwrap_or(crate::adapter::ErrorCategory::Adapter),
                error.message,
            )
            .retryable(error.retryable)
        });
        AgentTurnResult {
            status: if is_answered {
                TurnStatus::Completed
            } else {
                status
            },
            structured_output: turn.structured.or_else(|| passes.then(pass)),
            usage: turn.usage.unwrap_or_default(),
            error,
            interrupt,
            delegation_proposal: turn.delegation_proposal,
            ..AgentTurnResult::completed(text)
        }
    }
}

#[cfg(test)]
#[path = "fake_tests.rs"]
mod tests;
