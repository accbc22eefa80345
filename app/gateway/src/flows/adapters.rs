//! Adapter kinds that are registered, as validation and clients see them.

use std::fmt;

use deerflow_flow::adapter::{AdapterMetadata, AdapterRegistry};
use deerflow_flow::binding::KnownAdapters;

/// Adapters that flows may name.
pub trait FlowAdapters: KnownAdapters + Send + Sync + fmt::Debug {
    /// Returns the descriptions of the registered kinds, in alphabetical order.
    fn metadata(&self) -> Vec<AdapterMetadata>;
}

impl FlowAdapters for AdapterRegistry {
    fn metadata(&self) -> Vec<AdapterMetadata> {
        self.list()
    }
}
