//! Registry of adapter kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::contract::{AdapterFactory, AdapterMetadata, CONTRACT_VERSION};
use super::error::{ErrorCategory, FlowError};

/// Adapter kinds by name, with their aliases.
#[derive(Debug, Clone, Default)]
pub struct AdapterRegistry {
    factories: BTreeMap<String, Arc<dyn AdapterFactory>>,
    aliases: BTreeMap<String, String>,
}

impl AdapterRegistry {
    /// Registers a kind with its aliases. An existing kind of the name is replaced.
    ///
    /// # Errors
    /// `adapter_incompatible`, if the factory implements another major version of the contract.
    pub fn register(&mut self, factory: Arc<dyn AdapterFactory>) -> Result<(), FlowError> {
        let metadata = factory.metadata();
        let (kind, version) = (
            metadata.adapter_kind.clone(),
            metadata.contract_version.as_str(),
        );
        if major(version) != major(CONTRACT_VERSION) {
            let message = format!(
                "adapter {kind:?} implements version {version:?} of the contract; this engine needs \
                 {CONTRACT_VERSION}"
            );
            return Err(FlowError::new(
                "adapter_incompatible",
                ErrorCategory::Adapter,
                message,
            ));
        }
        self.aliases.retain(|_, target| *target != kind);
        for alias in factory.aliases() {
            self.aliases.insert((*alias).to_owned(), kind.clone());
        }
        self.factories.insert(kind, factory);
        Ok(())
    }

    /// Returns the factory of a kind or alias.
    ///
    /// # Errors
    /// `adapter_not_found`, with the registered kinds.
    pub fn resolve(&self, kind: &str) -> Result<&Arc<dyn AdapterFactory>, FlowError> {
        self.factories
            .get(kind)
            .or_else(|| self.factories.get(self.aliases.get(kind)?))
            .ok_or_else(|| {
                let known: Vec<&str> = self.factories.keys().map(String::as_str).collect();
                let message = format!(
                    "no adapter is registered for {kind:?}; registered are: {}",
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                );
                FlowError::new("adapter_not_found", ErrorCategory::Adapter, message)
            })
    }

    /// Returns the kind that a kind or alias names.
    pub fn canonical(&self, kind: &str) -> Option<&str> {
        let alias = || self.factories.get_key_value(self.aliases.get(kind)?);
        let (kind, _) = self.factories.get_key_value(kind).or_else(alias)?;
        Some(kind)
    }

    /// Returns the registered kinds, in alphabetical order.
    pub fn list(&self) -> Vec<AdapterMetadata> {
        self.factories
            .values()
            .map(|factory| factory.metadata().clone())
            .collect()
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
