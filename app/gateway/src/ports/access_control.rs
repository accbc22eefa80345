//! Port of what callers may use by their roles.

use std::fmt;

use async_trait::async_trait;
use harness::config::RoleRules;
use harness::runtime::actor_context::ActorContext;
use harness::runtime::runs::store::StoreError;

/// Rules of roles, as the current configuration states them.
#[async_trait]
pub trait AccessControl: Send + Sync + fmt::Debug {
    /// Returns the rules of an actor's role; `None` if roles restrict nothing.
    async fn rules_of(&self, actor: &ActorContext) -> Result<Option<RoleRules>, StoreError>;
}

/// Access control that restricts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAccessControl;

#[async_trait]
impl AccessControl for NoAccessControl {
    async fn rules_of(&self, _actor: &ActorContext) -> Result<Option<RoleRules>, StoreError> {
        Ok(None)
    }
}
