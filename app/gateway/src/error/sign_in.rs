//! Failures of sign-in, in the form that DeerFlow's web UI reads.

use axum::http::StatusCode;
use serde_json::{Value, json};

/// Explanation for programs, in addition to the message for people.
pub(super) const KEY_HINT: &str = "Programs send an API key as `x-api-key: KEY` or `Authorization: Bearer KEY`. Create one with `deerflow keys create` on the server, or with `POST /api/v1/auth/keys` while signed in.";

/// Failure of sign-in with its code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SignInFailure {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl SignInFailure {
    fn new(status: StatusCode, code: &'static str, message: &str) -> Self {
        Self {
            status,
            code,
            message: message.to_owned(),
        }
    }

    /// Unknown e-mail, account without password, or wrong password.
    pub(crate) fn bad_credentials() -> Self {
        let message = "Incorrect email or password";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_credentials", message)
    }

    /// A change of a password that is not possible, for the reason in `message`.
    pub(crate) fn password_change(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_credentials", message)
    }

    /// Another account has the e-mail.
    pub(crate) fn email_taken() -> Self {
        let message = "An account with this email already exists";
        Self::new(StatusCode::BAD_REQUEST, "email_already_exists", message)
    }

    /// There is an administrator.
    pub(crate) fn already_initialized() -> Self {
        let message = "System already initialized";
        Self::new(StatusCode::CONFLICT, "system_already_initialized", message)
    }

    /// The request has no session.
    pub(crate) fn not_authenticated() -> Self {
        let message = "Authentication required";
        Self::new(StatusCode::UNAUTHORIZED, "not_authenticated", message)
    }

    /// The session has ended by time.
    pub(crate) fn expired() -> Self {
        let message = "Token error: expired";
        Self::new(StatusCode::UNAUTHORIZED, "token_expired", message)
    }

    /// The text is no token, or the token of no session; `message` names the reason.
    pub(crate) fn invalid_token(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "token_invalid", message)
    }

    /// The account of the session does not exist.
    pub(crate) fn unknown_user() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "user_not_found", "User not found")
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn detail(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}
