//! Creates the factory of the adapter kind `pi-mono`.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_flow::adapters::pi_mono::{NoSecrets, PiMonoFactory, PiMonoOptions, PiMonoPorts};
use harness::clock::Clock;
use harness::config::{FlowsConfig, Variables};
use harness::config_file::Environment;
use harness::ids::IdSource;
use harness::net::SystemLookup;

/// Creates the factory with the options of the configuration and the variables of the environment.
///
/// # Errors
/// The HTTP client cannot be created.
pub(crate) fn factory(
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
