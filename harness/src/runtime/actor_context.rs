//! Who is acting. The entry boundary binds an actor; paths, stores and events below read it where isolation is needed.

use std::future::Future;

use serde::{Deserialize, Serialize};

/// The user id when no actor is bound and none is required.
pub const DEFAULT_USER_ID: &str = "default";

/// The actor of a request or a task. It says nothing of how the actor was authenticated beyond [`ActorContext::auth_source`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActorContext {
    /// Owner of what is created, and filter of what is read.
    pub user_id: String,
    /// The tenant, where several share a system.
    pub tenant_id: Option<String>,
    /// A more stable key of the same identity, such as an OIDC subject.
    pub subject_id: Option<String>,
    /// What the actor may do, for finer checks than ownership.
    pub scopes: Vec<String>,
    /// Where the identity came from: `session`, `api_key`, `channel:feishu`, `internal`, ...
    pub auth_source: Option<String>,
}

impl ActorContext {
    /// An actor known by its user id alone.
    pub fn user(user_id: impl Into<String>) -> Self {
        Self {
            user_id: user_id.into(),
            ..Self::default()
        }
    }
}

tokio::task_local! {
    static CURRENT: ActorContext;
}

/// Runs `work` with `actor` bound. Nested scopes shadow; the former actor is back when the scope ends.
pub async fn scope<F: Future>(actor: ActorContext, work: F) -> F::Output {
    CURRENT.scope(actor, work).await
}

/// The actor bound to this task, if any.
pub fn current() -> Option<ActorContext> {
    CURRENT.try_with(Clone::clone).ok()
}

/// The bound actor's user id, or [`DEFAULT_USER_ID`]: for paths and other places that always need an owner.
pub fn effective_user_id() -> String {
    CURRENT
        .try_with(|actor| actor.user_id.clone())
        .unwrap_or_else(|_| DEFAULT_USER_ID.to_owned())
}

/// The bound actor's user id, or an error: for places where a missing actor is a bug.
pub fn required_user_id() -> Result<String, NoActor> {
    CURRENT
        .try_with(|actor| actor.user_id.clone())
        .map_err(|_| NoActor)
}

/// No actor was bound where one is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no actor is bound to this task")]
pub struct NoActor;

/// Whose rows a store call means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// The bound actor's; an error without one.
    #[default]
    Auto,
    /// This user's.
    User(String),
    /// Everybody's: migrations and maintenance only.
    None,
}

impl Owner {
    /// The user id to filter by; `None` means no filter.
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
    async fn the_innermost_scope_is_seen_and_the_outer_one_comes_back() {
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
