//! Creates the catalog of flows with the adapter kinds of this installation.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::adapters::pi_mono::{NoSecrets, PiMonoFactory, PiMonoOptions, PiMonoPorts};
use deerflow_gateway::flows::{FlowCatalog, FlowRules, RegisteredAdapters};
use harness::clock::Clock;
use harness::config::{FlowsConfig, Variables};
use harness::config_file::Environment;
use harness::ids::IdSource;
use harness::net::SystemLookup;
use harness::runtime::tasks::TaskKind;

use super::context::Context;
use super::stores::Stores;
use crate::flows::{WatchedFlows, watch};

pub(super) async fn open(
    context: &Context<'_>,
    stores: &Stores,
) -> anyhow::Result<Arc<FlowCatalog>> {
    let rules = Arc::new(FlowRules::new(Arc::new(RegisteredAdapters(registry(
        context, stores,
    )?))));
    let (config, clock) = (context.config.clone(), stores.clock.clone());
    let system = WatchedFlows::open(config, rules.clone(), clock.clone()).await;
    context.tasks.spawn(
        TaskKind::Service,
        "flows",
        watch(system.clone(), context.shutdown.clone()),
    );
    let store = stores.flows.clone();
    Ok(Arc::new(FlowCatalog::new(
        store,
        Arc::new(system),
        rules,
        clock,
    )))
}

fn registry(context: &Context<'_>, stores: &Stores) -> anyhow::Result<AdapterRegistry> {
    let mut registry = AdapterRegistry::default();
    registry.register(Arc::new(FakeFactory::plain("fake")))?;
    registry.register(Arc::new(pi_mono(
        &context.now.flows,
        context.config.environment(),
        stores.clock.clone(),
        context.ids.clone(),
    )?))?;
    Ok(registry)
}

/// Creates the factory of the adapter kind `pi-mono`.
pub(crate) fn pi_mono(
    config: &FlowsConfig,
    environment: &Environment,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
) -> anyhow::Result<PiMonoFactory> {
    let environment = environment.clone();
    let ports = PiMonoPorts {
        options: options(config),
        variables: Variables::new(move |name| environment.get(name).map(str::to_owned)),
        secrets: Arc::new(NoSecrets),
        lookup: Arc::new(SystemLookup::default()),
        clock,
        ids,
    };
    PiMonoFactory::new(ports).context("cannot offer the adapter kind pi-mono")
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
