//! Adapters and sessions of a run: one adapter and one session per agent, one turn at a time.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use deerflow_core::messages::Message;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::deps::{FlowOptions, FlowPorts};
use super::history::Histories;
use crate::adapter::{
    AdapterContext, AgentAdapter, ErrorCategory, FlowError, SessionContext, SessionId, TurnEffect,
};
use crate::compiled::{AgentNode, CompiledFlow, EffectiveAgent};
use crate::machine::{FlowMachine, SessionRecord};

/// Time that an adapter has to abort a turn or to dispose a session.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// Age at which a session is replaced, if the agent names none, in milliseconds.
const SESSION_LIMIT_MS: u64 = 300_000;

/// Adapters and sessions of a run by agent.
#[derive(Debug, Default)]
pub(super) struct SessionPool {
    slots: Mutex<HashMap<String, Arc<AsyncMutex<AgentSlot>>>>,
    changes: Mutex<Vec<(String, SessionRecord)>>,
}

/// Adapter and session of an agent. Its lock is held during a turn.
#[derive(Debug, Default)]
pub(super) struct AgentSlot {
    adapter: Option<Arc<dyn AgentAdapter>>,
    session: Option<SessionRecord>,
    /// `true` if the session of an earlier process was asked for.
    is_restored: bool,
    /// `true` if the other side has seen the history.
    pub(super) is_new: bool,
    /// Turns of the session.
    pub(super) history: VecDeque<Message>,
}

impl SessionPool {
    /// Creates a pool with saved sessions and histories.
    pub(super) fn new(machine: &FlowMachine, histories: &Histories) -> Self {
        let mut slots: HashMap<String, AgentSlot> = HashMap::new();
        for (agent, session) in machine.sessions() {
            slots.entry(agent.to_owned()).or_default().session = Some(session.clone());
        }
        for (agent, history) in histories {
            slots
                .entry(agent.clone())
                .or_default()
                .history
                .clone_from(history);
        }
        let shared = |(agent, slot)| (agent, Arc::new(AsyncMutex::new(slot)));
        Self {
            slots: Mutex::new(slots.into_iter().map(shared).collect()),
            changes: Mutex::default(),
        }
    }

    pub(super) fn slot(&self, agent_id: &str) -> Arc<AsyncMutex<AgentSlot>> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(agent_id) {
            return slot.clone();
        }
        slots.entry(agent_id.to_owned()).or_default().clone()
    }

    /// Moves sessions that were created since the last call into the machine.
    pub(super) fn save_changes(&self, machine: &mut FlowMachine) {
        let changes = std::mem::take(&mut *self.changes.lock());
        for (agent, session) in changes {
            machine.set_session(&agent, Some(session));
        }
    }

    /// Returns the adapter and the session of a turn. Builds the adapter and creates the session
    /// before the first turn; replaces a session that is too old.
    pub(super) async fn open(
        &self,
        slot: &mut AgentSlot,
        turn: OpenTurn<'_>,
    ) -> Result<(Arc<dyn AgentAdapter>, SessionId), FlowError> {
        let agent = &turn.node.agent;
        let adapter = match &slot.adapter {
            Some(adapter) => adapter.clone(),
            None => slot.adapter.insert(build(&turn, agent).await?).clone(),
        };
        let limit = agent.timeouts.session_ms.unwrap_or(SESSION_LIMIT_MS);
        let is_old =
            |session: &SessionRecord| turn.now_ms.saturating_sub(session.created_at_ms) >= limit;
        if slot.session.as_ref().is_some_and(is_old) {
            self.close(slot, &turn).await;
        }
        if let Some(session) = &slot.session {
            return Ok((adapter, session.id.clone()));
        }
        let hooks = &turn.ports.hooks;
        let is_saved = adapter.effect() != TurnEffect::Pure;
        if is_saved
            && !std::mem::replace(&mut slot.is_restored, true)
            && let Some(saved) = hooks.saved_session(&agent.agent_id).await?
        {
            let id = saved.id.clone();
            self.enter(slot, agent, saved);
            return Ok((adapter, id));
        }
        let context = SessionContext {
            run_id: turn.options.run_id.to_string(),
            flow_name: turn.flow.document.meta.name.clone(),
            agent: agent.clone(),
            model: turn.node.model.clone(),
            temperature: turn.node.temperature,
        };
        let id = adapter.create_session(context).await?;
        let record = SessionRecord {
            id: id.clone(),
            created_at_ms: turn.now_ms,
        };
        hooks.session_changed(&agent.agent_id, Some(&record));
        let saved = match is_saved {
            true => hooks.save_session(&agent.agent_id, &record).await,
            false => Ok(()),
        };
        self.enter(slot, agent, record);
        saved.map(|()| (adapter, id))
    }

    /// Makes a session the one of its agent.
    fn enter(&self, slot: &mut AgentSlot, agent: &EffectiveAgent, session: SessionRecord) {
        let change = (agent.agent_id.clone(), session.clone());
        self.changes.lock().push(change);
        slot.session = Some(session);
        slot.is_new = true;
    }

    /// Disposes the session of a slot; the next turn creates another one.
    pub(super) async fn close(&self, slot: &mut AgentSlot, turn: &OpenTurn<'_>) {
        if let (Some(adapter), Some(session)) = (&slot.adapter, slot.session.take()) {
            dispose(&**adapter, &session.id).await;
            turn.ports
                .hooks
                .session_changed(&turn.node.agent.agent_id, None);
        }
    }

    /// Disposes all sessions at the end of a run and returns the histories. Problems are logged,
    /// because they do not change the result of the run.
    pub(super) async fn end(
        &self,
        flow: &CompiledFlow,
        ports: &FlowPorts,
        options: &FlowOptions,
        machine: &mut FlowMachine,
    ) -> Histories {
        self.save_changes(machine);
        let slots = std::mem::take(&mut *self.slots.lock());
        let mut histories = Histories::new();
        let ends = slots.into_iter().map(|(agent_id, slot)| async move {
            let Ok(mut slot) = tokio::time::timeout(GRACE, slot.lock_owned()).await else {
                return (agent_id, VecDeque::new());
            };
            if let Some(session) = slot.session.take() {
                let adapter = match slot.adapter.take() {
                    Some(adapter) => Some(adapter),
                    None => build_for_disposal(flow, ports, options, &agent_id).await,
                };
                if let Some(adapter) = adapter {
                    dispose(&*adapter, &session.id).await;
                }
                ports.hooks.session_changed(&agent_id, None);
            }
            (agent_id, std::mem::take(&mut slot.history))
        });
        for (agent, history) in futures_util::future::join_all(ends).await {
            machine.set_session(&agent, None);
            if !history.is_empty() {
                histories.insert(agent, history);
            }
        }
        histories
    }
}

/// Context in which a session is opened.
#[derive(Clone, Copy)]
pub(super) struct OpenTurn<'a> {
    pub(super) flow: &'a CompiledFlow,
    pub(super) ports: &'a FlowPorts,
    pub(super) options: &'a FlowOptions,
    pub(super) node: &'a AgentNode,
    pub(super) now_ms: u64,
}

async fn build(
    turn: &OpenTurn<'_>,
    agent: &Arc<EffectiveAgent>,
) -> Result<Arc<dyn AgentAdapter>, FlowError> {
    let factory = turn.ports.registry.resolve(&agent.adapter_kind)?;
    let flow_config = turn
        .flow
        .adapter_config
        .get(&agent.adapter_kind)
        .cloned()
        .unwrap_or_default();
    let findings = factory.validate_config(&flow_config, agent);
    if !findings.is_empty() {
        let texts: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}: {}", finding.code, finding.message))
            .collect();
        let code = "adapter_config_invalid";
        return Err(FlowError::new(
            code,
            ErrorCategory::Validation,
            texts.join("; "),
        ));
    }
    let context = AdapterContext {
        flow_name: turn.flow.document.meta.name.clone(),
        flow_config,
        agent: agent.clone(),
        actor: turn.options.actor.clone(),
    };
    factory.create(context).await
}

/// Builds the adapter of a session that another process created.
async fn build_for_disposal(
    flow: &CompiledFlow,
    ports: &FlowPorts,
    options: &FlowOptions,
    agent_id: &str,
) -> Option<Arc<dyn AgentAdapter>> {
    let node = flow.nodes.iter().find_map(|node| match &node.driver {
        crate::compiled::Driver::Agent(node) if node.agent.agent_id == agent_id => Some(node),
        _ => None,
    })?;
    let turn = OpenTurn {
        flow,
        ports,
        options,
        node,
        now_ms: 0,
    };
    build(&turn, &node.agent).await.ok()
}

async fn dispose(adapter: &dyn AgentAdapter, session: &SessionId) {
    let disposal = AssertUnwindSafe(adapter.dispose(session)).catch_unwind();
    match tokio::time::timeout(GRACE, disposal).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => {
            tracing::warn!(%session, code = %error.code, "session could not be disposed");
        }
        Ok(Err(_)) => tracing::error!(%session, "adapter panicked while disposing a session"),
        Err(_) => tracing::warn!(%session, "session was not disposed in time"),
    }
}
