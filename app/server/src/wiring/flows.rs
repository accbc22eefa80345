//! Creates the catalog of flows with the adapter kinds of this installation, and the assistants.

use std::sync::Arc;

use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::agent::FlowDependencies;
use deerflow_gateway::flows::{FlowAssistants, FlowCatalog, FlowRules};
use harness::flow::{FlowKinds, FlowLoader, HttpLoader, flow_registry};
use harness::net::SystemLookup;
use harness::runtime::tasks::TaskKind;
use harness::sandbox::FileHome;

use super::context::Context;
use super::pi_mono;
use super::stores::Stores;
use crate::agents::configured::ConfiguredAgents;
use crate::agents::flow_rules::{RoleAcpFactory, model_factory};
use crate::flows::{WatchedFlows, watch};

/// Flows of users and of the system, and the assistants that consist of agents and flows.
pub(super) struct Flows {
    pub(super) agents: Arc<ConfiguredAgents>,
    pub(super) catalog: Arc<FlowCatalog>,
    pub(super) assistants: Arc<FlowAssistants>,
}

pub(super) async fn open(
    context: &Context<'_>,
    stores: &Stores,
    files: &FileHome,
    agents: Arc<ConfiguredAgents>,
) -> anyhow::Result<Flows> {
    let registry = registry(context, stores, agents.clone())?;
    let loader = loader(context, files.clone());
    let adapters = Arc::new(registry.clone());
    let rules = Arc::new(FlowRules::new(adapters));
    let (config, clock) = (context.config.clone(), stores.clock.clone());
    let system = WatchedFlows::open(config, rules.clone(), clock.clone()).await;
    context.tasks.spawn(
        TaskKind::Service,
        "flows",
        watch(system.clone(), context.tasks.token().clone()),
    );
    let store = stores.flows.clone();
    let catalog = Arc::new(FlowCatalog::new(store, Arc::new(system), rules, clock));
    let limits = &context.now.flows;
    let dependencies = FlowDependencies {
        max_concurrency: limits.max_concurrency,
        max_subflow_depth: limits.max_subflow_depth,
        max_state_bytes: limits.max_state_bytes,
        loader: Some(Arc::new(loader)),
        ..FlowDependencies::new(registry)
    };
    let assistants = FlowAssistants::new(agents.clone(), catalog.clone(), dependencies);
    Ok(Flows {
        agents,
        catalog,
        assistants: Arc::new(assistants),
    })
}

fn registry(
    context: &Context<'_>,
    stores: &Stores,
    agents: Arc<ConfiguredAgents>,
) -> anyhow::Result<AdapterRegistry> {
    let (clock, ids) = (stores.clock.clone(), context.ids.clone());
    let kinds = FlowKinds {
        model: Some(model_factory(&agents, clock.clone(), ids.clone())),
        agents: Some(agents.clone()),
        pi_mono: Some(pi_mono::factory(
            &context.now.flows,
            context.config.environment(),
            clock,
            ids.clone(),
        )?),
        ..FlowKinds::new(ids.clone())
    };
    let mut registry = flow_registry(kinds)?;
    registry.register(Arc::new(RoleAcpFactory::new(agents, ids)))?;
    Ok(registry)
}

/// Loader of threads' files, and of the hosts of the current configuration.
fn loader(context: &Context<'_>, files: FileHome) -> FlowLoader {
    let config = context.config.clone();
    let hosts = move || config.current().flows.loader_hosts.clone();
    let lookup = Arc::new(SystemLookup::default());
    FlowLoader::new(files).with_http(HttpLoader::new(Arc::new(hosts), lookup))
}
