//! Flow of some threads: two branches and a loop, whose turns record their executions.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::world::{FlowTurn, World};
use crate::flow::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AdapterRegistry, AgentAdapter,
    AgentInvocation, AgentTurnResult, CONTRACT_VERSION, DeltaSink, FlowError, InvocationId,
    SessionContext, SessionId, TurnDelta, TurnEffect, TurnRuntime,
};
use crate::flow::agent::{FlowAgent, FlowDependencies};
use crate::flow::assets::PromptAssetManifest;
use crate::flow::compile::compile_text;
use crate::flow::validate::Options;
use crate::ids::ThreadId;
use crate::runtime::agent::Agent;

/// Beginning of the names of threads with flows.
pub(super) const FLOW_THREADS: char = 'f';
/// Executions of nodes with agents in a whole run: node and visit.
pub(super) const TURNS: [(&str, u64); 4] = [("left", 1), ("right", 1), ("last", 1), ("last", 2)];

const FLOW: &str = "
meta: {schemaVersion: '2.0', name: Simulated}
agents: {agentDefs: [{agentId: a, adapterKind: pure}, {agentId: b, adapterKind: unsafe}]}
runtime: {maxConcurrency: 2}
graph:
  startNodeId: split
  nodes:
    - {nodeId: split, nodeKind: control.parallel}
    - {nodeId: left, nodeKind: agent.sub, agentId: a}
    - {nodeId: right, nodeKind: agent.sub, agentId: b}
    - {nodeId: join, nodeKind: control.join}
    - {nodeId: rounds, nodeKind: control.loop, config: {maxIterations: 2}}
    - {nodeId: last, nodeKind: agent.main, agentId: a}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: split, target: left}
    - {source: split, target: right}
    - {source: left, target: join}
    - {source: right, target: join}
    - {source: join, target: rounds}
    - {source: rounds, sourceHandle: loop, target: last}
    - {source: last, target: rounds}
    - {source: rounds, sourceHandle: done, target: finish}
";

/// Returns `true` if the runs of a thread are those of the flow.
pub(super) fn has_flow(thread: &ThreadId) -> bool {
    thread.as_str().starts_with(FLOW_THREADS)
}

/// Returns the result of a whole run.
pub(super) fn result_of(label: &str) -> String {
    format!("last of {label}")
}

/// Creates the flow as an agent of one process.
pub(super) fn flow_agent(world: &Arc<World>) -> Arc<dyn Agent> {
    let mut registry = AdapterRegistry::default();
    for (kind, effect) in [("pure", TurnEffect::Pure), ("unsafe", TurnEffect::Unsafe)] {
        let turns = Turns {
            world: world.clone(),
            effect,
        };
        let metadata = AdapterMetadata {
            adapter_kind: kind.to_owned(),
            display_name: kind.to_owned(),
            adapter_version: "1.0".to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            supported_capabilities: vec![],
            limitations: vec![],
        };
        registry
            .register(Arc::new(Factory { metadata, turns }))
            .expect("a compatible adapter");
    }
    let manifest = PromptAssetManifest::default();
    let flow = compile_text(FLOW, &manifest, &registry, &Options::default())
        .expect("valid")
        .flow;
    Arc::new(FlowAgent::new(
        flow,
        Arc::new(FlowDependencies::new(registry)),
    ))
}

#[derive(Debug)]
struct Factory {
    metadata: AdapterMetadata,
    turns: Turns,
}

#[async_trait]
impl AdapterFactory for Factory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    async fn create(&self, _: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        Ok(Arc::new(self.turns.clone()))
    }
}

#[derive(Debug, Clone)]
struct Turns {
    world: Arc<World>,
    effect: TurnEffect,
}

#[async_trait]
impl AgentAdapter for Turns {
    async fn create_session(&self, context: SessionContext) -> Result<SessionId, FlowError> {
        sleep(self.world.chance.millis(0, 30)).await;
        Ok(SessionId(format!("s-{}", context.agent.agent_id)))
    }

    async fn run_turn(
        &self,
        turn: AgentInvocation,
        _: TurnRuntime,
        sink: &dyn DeltaSink,
        _: CancellationToken,
    ) -> AgentTurnResult {
        let chance = &self.world.chance;
        sleep(chance.millis(0, 60)).await;
        let (node, label) = (turn.node_id.clone(), turn.run_id.clone());
        self.world
            .log_event("turn", format_args!("{node} {} of {label}", turn.visit));
        self.world.observations.lock().turns.push(FlowTurn {
            run: label.clone(),
            node: node.clone(),
            visit: turn.visit,
            invocation: turn.invocation_id.0,
            is_unsafe: self.effect == TurnEffect::Unsafe,
        });
        let text = format!("{node} of {label}");
        for part in text.split_inclusive(' ') {
            let longest = if chance.of_thousand(100) { 2_000 } else { 60 };
            sleep(chance.millis(0, longest)).await;
            sink.delta(TurnDelta {
                text: part.to_owned(),
                reasoning: String::new(),
            });
        }
        AgentTurnResult::completed(text)
    }

    async fn abort(&self, _: &InvocationId) -> Result<(), FlowError> {
        Ok(())
    }

    async fn dispose(&self, _: &SessionId) -> Result<(), FlowError> {
        Ok(())
    }

    fn effect(&self) -> TurnEffect {
        self.effect
    }
}
