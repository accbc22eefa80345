//! Rights of administrators.

use harness::runtime::actor_context::current;

use crate::error::ApiError;

/// Scope of administrators.
pub const ADMIN: &str = "admin";

/// Rejects actors that have not the administrator scope.
pub(crate) fn require_admin(message: &str) -> Result<(), ApiError> {
    if is_admin() {
        Ok(())
    } else {
        Err(ApiError::Forbidden(message.to_owned()))
    }
}

/// `false` if the server does not authenticate and the request has no session.
pub(crate) fn is_authentication_enabled() -> bool {
    current().is_none_or(|actor| actor.auth_source.as_deref() != Some(DISABLED))
}

/// Source of the default actor of a server that does not authenticate.
pub(super) const DISABLED: &str = "disabled";

/// `true` if the actor is an administrator.
pub(crate) fn is_admin() -> bool {
    current().is_some_and(|actor| actor.scopes.iter().any(|scope| scope == ADMIN))
}
