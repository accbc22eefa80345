//! Creates the runtime of runs, and takes over runs that no node executes.

use std::sync::Arc;

use harness::middlewares::SnapshotFileChanges;
use harness::runtime::agent::AgentResolver;
use harness::runtime::runs::{NodeLifecycle, NodeNotifier, RunsFacade, RuntimePorts};
use harness::runtime::stream_bridge::StreamBridge;

use super::context::Context;
use super::resources::Resources;
use super::role::Role;
use super::stores::Stores;
use crate::metrics::RunMeter;
use crate::services::limits::LimitRules;

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    resources: &Resources,
    (bridge, bell): (Arc<dyn StreamBridge>, Arc<dyn NodeNotifier>),
    agents: Arc<dyn AgentResolver>,
) -> Arc<RunsFacade> {
    let ports = RuntimePorts {
        bridge,
        checkpointer: stores.checkpoints.clone(),
        create: stores.runs.clone(),
        commit: stores.of_events.commits.clone(),
        query: stores.runs.clone(),
        delete: stores.of_events.deletes.clone(),
        ledger: stores.runs.clone(),
        nodes: stores.nodes.clone(),
        bell,
        events: stores.of_events.events.clone(),
        file_changes: Arc::new(SnapshotFileChanges::new(&resources.files)),
        agents,
        observer: Arc::new(RunMeter::default()),
        clock: stores.clock.clone(),
        ids: context.ids.clone(),
        tasks: context.tasks.clone(),
    };
    let limits = LimitRules::new(context.settings).runs(&context.now);
    Arc::new(RunsFacade::new(ports, limits))
}

/// Registers this process as a node; a server also takes over orphaned runs.
pub(super) async fn join(node: &NodeLifecycle, role: Role) -> anyhow::Result<()> {
    let recovered = match role {
        Role::Server => node.recover().await?,
        Role::Guest => node.join().await?,
    };
    if recovered > 0 {
        tracing::warn!(runs = recovered, "took over orphaned runs");
    }
    Ok(())
}
