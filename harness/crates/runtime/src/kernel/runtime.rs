//! Ports and state that all operations of the kernel share.

use std::sync::Arc;

use super::registry::RunRegistry;
use crate::definition::RunLimits;
use crate::ports::RuntimePorts;

/// Ports and state of the run kernel in one process.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) ports: RuntimePorts,
    pub(crate) registry: RunRegistry,
}

impl Runtime {
    /// Creates a runtime without runs.
    pub fn new(ports: RuntimePorts, limits: RunLimits) -> Arc<Self> {
        let registry = RunRegistry::new(ports.ids.node_id(), limits);
        Arc::new(Self { ports, registry })
    }

    /// Returns the ports, for callers that read other data than runs.
    pub fn ports(&self) -> &RuntimePorts {
        &self.ports
    }
}
