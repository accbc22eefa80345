//! Makes envelopes of events, if the sink is active.

use std::sync::Arc;

use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_runtime::agent::AgentEvent;

use super::deps::{FlowPorts, RunHooks};
use crate::adapter::{DeltaSink, InvocationId, TurnDelta};
use crate::events::{EventBody, FlowEvent, FlowEventSink};

/// Emits the events of a run or of a sub-flow.
#[derive(Debug)]
pub(super) struct Emitter {
    run_id: Arc<str>,
    /// `outer/` within a sub-flow.
    prefix: String,
    events: Arc<dyn FlowEventSink>,
    hooks: Arc<dyn RunHooks>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    active: bool,
}

impl Emitter {
    pub(super) fn new(ports: &FlowPorts, run_id: Arc<str>, prefix: String) -> Self {
        Self {
            run_id,
            prefix,
            events: ports.events.clone(),
            hooks: ports.hooks.clone(),
            clock: ports.clock.clone(),
            ids: ports.ids.clone(),
            active: ports.events.is_active(),
        }
    }

    pub(super) fn is_nested(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Returns the id of a node as clients see it.
    pub(super) fn node_id(&self, node: &str) -> String {
        format!("{}{node}", self.prefix)
    }

    /// Returns the time in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().timestamp_millis()).unwrap_or(0)
    }

    /// Emits an event of the run. A sub-flow emits none.
    pub(super) fn run(&self, node: Option<&str>, body: impl FnOnce() -> EventBody) {
        if !self.is_nested() {
            self.emit(node, None, None, body);
        }
    }

    /// Emits an event of a node.
    pub(super) fn node(&self, node: &str, body: impl FnOnce() -> EventBody) {
        self.emit(Some(node), None, None, body);
    }

    /// Emits an event of a turn.
    pub(super) fn turn(&self, turn: &TurnSink<'_>, body: impl FnOnce() -> EventBody) {
        self.emit(
            Some(turn.node),
            Some(turn.agent),
            Some(turn.invocation),
            body,
        );
    }

    fn emit(
        &self,
        node: Option<&str>,
        agent: Option<&str>,
        invocation: Option<&InvocationId>,
        body: impl FnOnce() -> EventBody,
    ) {
        if self.active {
            self.events.emit(FlowEvent {
                event_id: self.ids.random().to_string(),
                run_id: self.run_id.clone(),
                node_id: node.map(|node| self.node_id(node)),
                agent_id: agent.map(str::to_owned),
                invocation_id: invocation.map(ToString::to_string),
                timestamp: self.clock.now(),
                body: body(),
            });
        }
    }
}

/// Receives the output of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnSink<'a> {
    pub(super) emitter: &'a Emitter,
    pub(super) node: &'a str,
    pub(super) agent: &'a str,
    pub(super) invocation: &'a InvocationId,
    /// Id of the node as the hooks know it.
    pub(super) hook_node: &'a str,
}

impl DeltaSink for TurnSink<'_> {
    fn delta(&self, delta: TurnDelta) {
        self.emitter.turn(self, || EventBody::Delta(delta));
    }

    fn event(&self, event: AgentEvent) {
        self.emitter.hooks.agent_event(self.hook_node, event);
    }
}
