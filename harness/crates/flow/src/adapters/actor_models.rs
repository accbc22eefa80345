//! Port of the model entries that an actor may use.

use std::fmt;

use async_trait::async_trait;
use deerflow_models::AuxiliaryModels;

use crate::adapter::FlowError;

/// Model entries of one actor.
#[derive(Debug, Clone)]
pub struct ActorModels {
    /// Allowed entries, the default one first.
    pub models: AuxiliaryModels,
    /// Names of entries that exist, but not for the actor. An agent that names one gets the default
    /// entry.
    pub forbidden: Vec<String>,
}

impl ActorModels {
    /// Returns the name, unless the entry is forbidden.
    pub(super) fn allowed<'a>(&self, name: Option<&'a str>) -> Option<&'a str> {
        name.filter(|name| !self.forbidden.iter().any(|no| no == name))
    }
}

impl From<AuxiliaryModels> for ActorModels {
    fn from(models: AuxiliaryModels) -> Self {
        Self {
            models,
            forbidden: Vec::new(),
        }
    }
}

/// Returns the model entries of the bound actor.
#[async_trait]
pub trait ActorModelSource: Send + Sync + fmt::Debug {
    /// Returns the entries for a new adapter.
    ///
    /// # Errors
    /// The rights of the actor are not known.
    async fn models(&self) -> Result<ActorModels, FlowError>;
}
