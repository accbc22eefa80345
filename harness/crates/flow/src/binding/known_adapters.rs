//! The adapters that a flow may name, as validation sees them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::adapter::{CONTRACT_VERSION, ConfigFinding};
use crate::compiled::EffectiveAgent;

/// Aliases of kinds.
const ALIASES: [(&str, &str); 2] = [("deepseek", "pi-mono"), ("harness", "deerflow")];

/// An adapter kind that is registered.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownAdapter {
    /// Canonical kind.
    pub kind: String,
    /// Version of the contract that it implements.
    pub contract_version: String,
    /// `true` if turns without a time limit get the default one.
    pub has_default_turn_limit: bool,
}

/// Registered adapter kinds. The adapter registry implements it.
pub trait KnownAdapters {
    /// Returns the adapter of a kind or alias.
    fn find(&self, kind_or_alias: &str) -> Option<KnownAdapter>;

    /// Returns the canonical kinds in alphabetical order.
    fn kinds(&self) -> Vec<String>;

    /// Returns the problems of an agent's configuration, for a deep validation. `flow_config` is
    /// `runtime.adapterConfig` for the kind.
    fn config_findings(
        &self,
        _flow_config: &Map<String, Value>,
        _agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        Vec::new()
    }
}

/// Returns the settings that an alias implies: those of the agent and of the flow take precedence.
pub fn settings_of_alias(alias: &str) -> Map<String, Value> {
    let mut settings = Map::new();
    if alias == "deepseek" {
        settings.insert("transport".to_owned(), Value::from("deepseek"));
    }
    settings
}

/// A list of kinds of the current contract version, for validation without a registry. Knows the
/// aliases `deepseek` of `pi-mono` and `harness` of `deerflow`.
///
/// ```
/// use deerflow_flow::binding::{AdapterList, KnownAdapters};
///
/// let adapters = AdapterList::new(["fake", "pi-mono"]);
/// assert_eq!(adapters.find("deepseek").unwrap().kind, "pi-mono");
/// assert!(adapters.find("deerflow").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct AdapterList(BTreeSet<String>);

impl AdapterList {
    /// Creates a list.
    pub fn new<K: Into<String>>(kinds: impl IntoIterator<Item = K>) -> Self {
        Self(kinds.into_iter().map(Into::into).collect())
    }
}

impl KnownAdapters for AdapterList {
    fn find(&self, kind_or_alias: &str) -> Option<KnownAdapter> {
        let canonical = ALIASES
            .iter()
            .find(|(alias, _)| *alias == kind_or_alias)
            .map_or(kind_or_alias, |(_, kind)| kind);
        let kind = self
            .0
            .get(kind_or_alias)
            .or_else(|| self.0.get(canonical))?;
        Some(KnownAdapter {
            kind: kind.clone(),
            contract_version: CONTRACT_VERSION.to_owned(),
            has_default_turn_limit: kind != "deerflow",
        })
    }

    fn kinds(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}
