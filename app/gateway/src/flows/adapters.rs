//! Adapter kinds that are registered, as validation and clients see them.

use std::fmt;

use deerflow_flow::adapter::{AdapterMetadata, AdapterRegistry, ConfigFinding};
use deerflow_flow::binding::{KnownAdapter, KnownAdapters};
use deerflow_flow::compiled::EffectiveAgent;
use serde_json::{Map, Value};

/// Adapters that flows may name.
pub trait FlowAdapters: KnownAdapters + Send + Sync + fmt::Debug {
    /// Returns the descriptions of the registered kinds, in alphabetical order.
    fn metadata(&self) -> Vec<AdapterMetadata>;
}

/// Adapters of a registry.
#[derive(Debug, Clone, Default)]
pub struct RegisteredAdapters(pub AdapterRegistry);

impl KnownAdapters for RegisteredAdapters {
    fn find(&self, kind_or_alias: &str) -> Option<KnownAdapter> {
        let factory = self.0.resolve(kind_or_alias).ok()?;
        let metadata = factory.metadata();
        Some(KnownAdapter {
            kind: metadata.adapter_kind.clone(),
            contract_version: metadata.contract_version.clone(),
            has_default_turn_limit: factory.has_default_turn_limit(),
        })
    }

    fn kinds(&self) -> Vec<String> {
        let metadata = self.metadata().into_iter();
        metadata.map(|metadata| metadata.adapter_kind).collect()
    }

    fn config_findings(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        match self.0.resolve(&agent.adapter_kind) {
            Ok(factory) => factory.validate_config(flow_config, agent),
            Err(_) => Vec::new(),
        }
    }
}

impl FlowAdapters for RegisteredAdapters {
    fn metadata(&self) -> Vec<AdapterMetadata> {
        self.0.list()
    }
}
