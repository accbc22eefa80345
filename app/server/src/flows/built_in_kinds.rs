//! The adapter kinds of the server, for validation without one.

use deerflow_flow::adapter::AdapterMetadata;
use deerflow_flow::binding::{AdapterList, KnownAdapter, KnownAdapters};
use deerflow_gateway::flows::FlowAdapters;

/// Names of the kinds.
pub(crate) const KINDS: [&str; 5] = ["acp", "deerflow", "fake", "model", "pi-mono"];

/// The built-in adapter kinds and their aliases.
#[derive(Debug, Clone)]
pub(crate) struct BuiltInKinds(AdapterList);

impl Default for BuiltInKinds {
    fn default() -> Self {
        Self(AdapterList::new(KINDS))
    }
}

impl KnownAdapters for BuiltInKinds {
    fn find(&self, kind_or_alias: &str) -> Option<KnownAdapter> {
        self.0.find(kind_or_alias)
    }

    fn kinds(&self) -> Vec<String> {
        self.0.kinds()
    }
}

impl FlowAdapters for BuiltInKinds {
    fn metadata(&self) -> Vec<AdapterMetadata> {
        Vec::new()
    }
}
