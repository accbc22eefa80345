//! The acting user. The entry boundary binds an actor; paths, stores and events read it where
//! isolation is needed.

use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// User id if no actor is bound and none is required.
pub const DEFAULT_USER_ID: &str = "default";

/// Actor of a request or a task: the user on behalf of whom it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActorContext {
    /// Owner of created rows, and filter of reads.
    pub user_id: String,
    /// Tenant, if several tenants share the deployment.
    pub tenant_id: Option<String>,
    /// More stable key of the same identity, such as an OIDC subject.
    pub subject_id: Option<String>,
    /// Permissions of the actor, for finer checks than ownership.
    pub scopes: Vec<String>,
    /// Source of the identity: `session`, `api_key`, `channel:feishu`, `internal`, ...
    pub auth_source: Option<String>,
}

impl ActorContext {
    /// Creates an actor with a user id only.
    pub fn user(user_id: impl Into<String>) -> Self {
        Self {
            user_id: user_id.into(),
            ..Self::default()
        }
    }
}

tokio::task_local! {
    static CURRENT: Arc<ActorContext>;
}

/// Runs `work` with `actor` bound. A nested scope replaces the actor; the outer one is restored
/// when the nested scope ends.
pub fn scope<F: Future>(actor: ActorContext, work: F) -> impl Future<Output = F::Output> {
    scope_shared(Arc::new(actor), work)
}

/// Runs `work` with `actor` bound, like [`scope`].
pub(crate) fn scope_shared<F: Future>(
    actor: Arc<ActorContext>,
    work: F,
) -> impl Future<Output = F::Output> {
    CURRENT.scope(actor, work)
}

/// Returns the actor bound to this task, if any.
pub fn current() -> Option<ActorContext> {
    current_shared().map(Arc::unwrap_or_clone)
}

/// Returns the actor bound to this task without a copy, if any.
pub(crate) fn current_shared() -> Option<Arc<ActorContext>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Returns the bound actor's user id, or [`DEFAULT_USER_ID`]: for paths and other values that
/// always need an owner.
pub fn effective_user_id() -> String {
    CURRENT
        .try_with(|actor| actor.user_id.clone())
        .unwrap_or_else(|_| DEFAULT_USER_ID.to_owned())
}

/// Returns the bound actor's user id, or an error if no actor is bound, for code that must not run
/// without one.
pub fn required_user_id() -> Result<String, NoActor> {
    CURRENT
        .try_with(|actor| actor.user_id.clone())
        .map_err(|_| NoActor)
}

/// No actor was bound where one is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no actor is bound to this task")]
pub struct NoActor;

/// Owner filter of a store call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// Rows of the bound actor; an error without one.
    #[default]
    Auto,
    /// Rows of this user.
    User(String),
    /// Rows of all users: migrations and maintenance only.
    None,
}

impl Owner {
    /// Returns the user id to filter by; `None` means no filter.
    pub fn resolve(&self) -> Result<Option<String>, NoActor> {
        match self {
            Self::Auto => required_user_id().map(Some),
            Self::User(id) => Ok(Some(id.clone())),
            Self::None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nested_scope_shadows_and_outer_is_restored() {
        assert_eq!(effective_user_id(), DEFAULT_USER_ID);
        assert_eq!(required_user_id(), Err(NoActor));
        scope(ActorContext::user("a"), async {
            scope(ActorContext::user("b"), async {
                assert_eq!(effective_user_id(), "b")
            })
            .await;
            assert_eq!(Owner::Auto.resolve(), Ok(Some("a".to_owned())));
            assert_eq!(
                Owner::User("c".to_owned()).resolve(),
                Ok(Some("c".to_owned()))
            );
            assert_eq!(Owner::None.resolve(), Ok(None));
        })
        .await;
        assert_eq!(Owner::Auto.resolve(), Err(NoActor));
    }
}
