//! The registry as validation sees it.

use serde_json::{Map, Value};

use crate::adapter::{AdapterRegistry, ConfigFinding};
use crate::binding::{KnownAdapter, KnownAdapters};
use crate::compiled::EffectiveAgent;

impl KnownAdapters for AdapterRegistry {
    fn find(&self, kind_or_alias: &str) -> Option<KnownAdapter> {
        let factory = self.resolve(kind_or_alias).ok()?;
        let metadata = factory.metadata();
        Some(KnownAdapter {
            kind: metadata.adapter_kind.clone(),
            contract_version: metadata.contract_version.clone(),
            has_default_turn_limit: factory.has_default_turn_limit(),
        })
    }

    fn kinds(&self) -> Vec<String> {
        self.list()
            .into_iter()
            .map(|metadata| metadata.adapter_kind)
            .collect()
    }

    fn config_findings(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        self.resolve(&agent.adapter_kind)
            .map(|factory| factory.validate_config(flow_config, agent))
            .unwrap_or_default()
    }
}
