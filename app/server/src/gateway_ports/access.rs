//! Rules of roles from the current configuration and the accounts.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::accounts::{AccountStore, Role};
use deerflow_gateway::guard::auth::ADMIN;
use deerflow_gateway::ports::AccessControl;
use harness::config::RoleRules;
use harness::runtime::actor_context::ActorContext;
use harness::runtime::runs::store::StoreError;

use crate::config::ConfigHandle;

/// Source of internal callers, which act for users but have no role of theirs.
const INTERNAL: &str = "internal";

/// Access control of an installation. A changed configuration and a changed role hold for the next
/// question.
#[derive(Debug)]
pub(crate) struct ConfiguredAccess {
    pub(crate) config: ConfigHandle,
    pub(crate) accounts: Arc<dyn AccountStore>,
}

#[async_trait]
impl AccessControl for ConfiguredAccess {
    async fn rules_of(&self, actor: &ActorContext) -> Result<Option<RoleRules>, StoreError> {
        let config = self.config.current();
        let Some(rules) = config.authorization.rules() else {
            return Ok(None);
        };
        let default = rules.default_role.as_str();
        if actor.auth_source.as_deref() == Some(INTERNAL) {
            return Ok(Some(rules.of_role(default)));
        }
        // The account decides, not what the actor had when its run or schedule was created.
        let account = self.accounts.find(&actor.user_id).await?;
        let role = match account {
            Some(account) => account.role.as_str(),
            None if actor.scopes.iter().any(|scope| scope == ADMIN) => Role::Admin.as_str(),
            None => default,
        };
        Ok(Some(rules.of_role(role)))
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
