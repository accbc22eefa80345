//! Registry of all adapter kinds.

use std::sync::Arc;

use super::adapter::{AdapterRegistry, FlowError};
use super::adapters::fake::FakeFactory;
use super::adapters::model::ModelFactory;
#[cfg(feature = "providers")]
use super::adapters::pi_mono::PiMonoFactory;
use super::deerflow::{DeerflowFactory, NodeAgents};
use crate::ids::IdSource;

/// Parts of the adapter kinds of an installation. A kind whose part is absent is not
/// registered.
#[derive(Debug)]
pub struct FlowKinds {
    /// Kind `model`.
    pub model: Option<ModelFactory>,
    /// Agents of the kind `deerflow`.
    pub agents: Option<Arc<dyn NodeAgents>>,
    /// Kind `pi-mono`.
    #[cfg(feature = "providers")]
    pub pi_mono: Option<PiMonoFactory>,
    /// Kind `acp`.
    #[cfg(feature = "acp")]
    pub acp: Option<super::AcpFactory>,
    /// Source of session ids.
    pub ids: Arc<dyn IdSource>,
}

impl FlowKinds {
    /// Creates an installation with the kind `fake` only.
    pub fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            model: None,
            agents: None,
            #[cfg(feature = "providers")]
            pi_mono: None,
            #[cfg(feature = "acp")]
            acp: None,
            ids,
        }
    }
}

/// Registers `fake` and the kinds of an installation.
///
/// # Errors
/// `adapter_incompatible`, if a factory implements another major version of the contract.
pub fn flow_registry(kinds: FlowKinds) -> Result<AdapterRegistry, FlowError> {
    let mut registry = AdapterRegistry::default();
    registry.register(Arc::new(FakeFactory::plain("fake")))?;
    if let Some(model) = kinds.model {
        registry.register(Arc::new(model))?;
    }
    if let Some(agents) = kinds.agents {
        registry.register(Arc::new(DeerflowFactory::new(agents, kinds.ids)))?;
    }
    #[cfg(feature = "providers")]
    if let Some(pi_mono) = kinds.pi_mono {
        registry.register(Arc::new(pi_mono))?;
    }
    #[cfg(feature = "acp")]
    if let Some(acp) = kinds.acp {
        registry.register(Arc::new(acp))?;
    }
    Ok(registry)
}
