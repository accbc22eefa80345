//! Creates the catalog of flows with the adapter kinds of this installation, and the assistants.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::adapters::model::ModelFactory;
use deerflow_flow::adapters::pi_mono::{NoSecrets, PiMonoFactory, PiMonoOptions, PiMonoPorts};
use deerflow_flow::agent::FlowDependencies;
use deerflow_gateway::flows::{FlowAssistants, FlowCatalog, FlowRules, RegisteredAdapters};
use harness::config::{FlowsConfig, Variables};
use harness::net::SystemLookup;
use harness::runtime::tasks::TaskKind;

use super::context::Context;
use super::stores::Stores;
use crate::agents::configured::ConfiguredAgents;
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
    agents: Arc<ConfiguredAgents>,
) -> anyhow::Result<Flows> {
    let registry = registry(context, stores, agents.clone())?;
    let adapters = Arc::new(RegisteredAdapters(registry.clone()));
    let rules = Arc::new(FlowRules::new(adapters));
    let (config, clock) = (context.config.clone(), stores.clock.clone());
    let system = WatchedFlows::open(config, rules.clone(), clock.clone()).await;
    context.tasks.spawn(
        TaskKind::Service,
        "flows",
        watch(system.clone(), context.shutdown.clone()),
    );
    let store = stores.flows.clone();
    let catalog = Arc::new(FlowCatalog::new(store, Arc::new(system), rules, clock));
    let limits = &context.now.flows;
    let dependencies = FlowDependencies {
        max_concurrency: limits.max_concurrency,
        max_subflow_depth: limits.max_subflow_depth,
        max_state_bytes: limits.max_state_bytes,
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
    let environment = context.config.environment().clone();
    let ports = PiMonoPorts {
        options: options(&context.now.flows),
        variables: Variables::new(move |name| environment.get(name).map(str::to_owned)),
        secrets: Arc::new(NoSecrets),
        lookup: Arc::new(SystemLookup::default()),
        clock: stores.clock.clone(),
        ids: context.ids.clone(),
    };
    let mut registry = AdapterRegistry::default();
    registry.register(Arc::new(FakeFactory::plain("fake")))?;
    registry.register(Arc::new(ModelFactory::of_current(
        Arc::new(move || agents.assembled().models.clone()),
        stores.clock.clone(),
        context.ids.clone(),
    )))?;
    let pi_mono = PiMonoFactory::new(ports).context("cannot offer the adapter kind pi-mono")?;
    registry.register(Arc::new(pi_mono))?;
    Ok(registry)
}

fn options(config: &FlowsConfig) -> PiMonoOptions {
    let adapter = &config.adapters.pi_mono;
    PiMonoOptions {
        base_url: adapter.base_url.clone(),
        api_key: adapter.api_key.clone(),
        model: adapter.model.clone(),
        temperature: adapter.temperature,
        allowed_origins: config.allowed_origins.clone(),
    }
}
