//! Port of the secrets that configurations name.

use std::fmt;

use async_trait::async_trait;
use deerflow_core::actor_context::ActorContext;
use secrecy::SecretString;

/// Resolves `{"secret": "name"}` in a configuration.
#[async_trait]
pub trait SecretResolver: Send + Sync + fmt::Debug {
    /// Returns the secret of this name that the actor may use, or `None` if there is none.
    async fn resolve(&self, actor: &ActorContext, name: &str) -> Option<SecretString>;
}

/// Resolver without secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

#[async_trait]
impl SecretResolver for NoSecrets {
    async fn resolve(&self, _actor: &ActorContext, _name: &str) -> Option<SecretString> {
        None
    }
}
