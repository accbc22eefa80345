//! Flows of the gateway under test: those of users, and one of the system.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::flows::InMemoryFlowStore;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_gateway::flows::{FlowCatalog, FlowRules, ProjectFile, SystemFlows, SystemSnapshot};
use harness::clock::Clock;

/// A valid flow with one node.
pub(crate) const FLOW: &str = "\
# A comment, which stays.
meta: {schemaVersion: '2.0', name: Say Hello}
agents: {agentDefs: [{agentId: a, adapterKind: fake}]}
graph:
  startNodeId: greet
  nodes: [{nodeId: greet, nodeKind: agent.main, agentId: a}]
  edges: []
";

/// System flows that never change.
#[derive(Debug)]
struct FixedFlows(Arc<SystemSnapshot>);

#[async_trait]
impl SystemFlows for FixedFlows {
    fn current(&self) -> Arc<SystemSnapshot> {
        self.0.clone()
    }

    async fn reload(&self) -> Arc<SystemSnapshot> {
        self.0.clone()
    }
}

/// Returns a catalog with the system flow `shipped`.
pub(super) fn catalog(clock: Arc<dyn Clock>) -> Arc<FlowCatalog> {
    let mut registry = AdapterRegistry::default();
    registry
        .register(Arc::new(FakeFactory::plain("fake")))
        .expect("a compatible adapter");
    let rules = Arc::new(FlowRules::new(Arc::new(registry)));
    let file = |path: &str, text: &str| ProjectFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let files = vec![
        file("shipped.yaml", FLOW),
        file("broken.yaml", "meta: {name: x}\n"),
    ];
    let system = SystemSnapshot::default().after_scan(files, &rules, clock.now());
    Arc::new(FlowCatalog::new(
        Arc::new(InMemoryFlowStore::default()),
        Arc::new(FixedFlows(Arc::new(system))),
        rules,
        clock,
    ))
}
