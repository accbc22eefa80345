//! Adapter kinds of a run without a server.

use std::sync::Arc;

use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::adapters::model::ModelFactory;
use harness::agents::lead::configured_models;
use harness::clock::SystemClock;
use harness::config::AppConfig;
use harness::config_file::Environment;
use harness::ids::SystemIds;
use harness::models::ModelCatalog;

use crate::flows::KINDS;
use crate::wiring::pi_mono;

/// Returns the kinds that need neither stores nor files: `model`, `pi-mono` and `fake`.
///
/// # Errors
/// The HTTP client cannot be created.
pub(super) fn live(
    config: &AppConfig,
    environment: &Environment,
) -> anyhow::Result<AdapterRegistry> {
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let catalog = ModelCatalog::from_config(&config.models, clock.clone());
    let models = configured_models(config, catalog);
    let mut registry = AdapterRegistry::default();
    registry.register(Arc::new(FakeFactory::plain("fake")))?;
    registry.register(Arc::new(ModelFactory::new(
        models,
        clock.clone(),
        ids.clone(),
    )))?;
    let pi_mono = pi_mono::factory(&config.flows, environment, clock, ids)?;
    registry.register(Arc::new(pi_mono))?;
    Ok(registry)
}

/// Returns all built-in kinds with fixed answers.
pub(super) fn dry() -> anyhow::Result<AdapterRegistry> {
    let mut registry = AdapterRegistry::default();
    for kind in KINDS {
        registry.register(Arc::new(FakeFactory::dry_run(kind)))?;
    }
    Ok(registry)
}
