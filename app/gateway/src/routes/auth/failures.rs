//! Failures of the sign-in service as errors of the API.

use std::time::Duration;

use deerflow_accounts::SignInError;
use serde_json::Value;

use crate::error::{ApiError, Issue, SignInFailure, capitalized};

/// Converts a failure; `password` is the field of the new password.
pub(crate) fn refusal(error: SignInError, password: &str) -> ApiError {
    let text = capitalized(&error.to_string());
    match error {
        SignInError::BadCredentials => SignInFailure::bad_credentials().into(),
        SignInError::Disabled => {
            ApiError::Forbidden("This account is disabled. Ask an administrator.".to_owned())
        }
        SignInError::Limited { retry_after } => ApiError::Limited {
            message: text,
            retry_after_secs: seconds(retry_after),
        },
        SignInError::Busy(busy) => ApiError::Busy {
            message: text,
            retry_after_secs: seconds(busy.retry_after),
        },
        SignInError::InvalidEmail(_) => value_error("email", text),
        SignInError::InvalidPassword(_) => value_error(password, text),
        SignInError::EmailTaken => SignInFailure::email_taken().into(),
        SignInError::AdministratorExists => SignInFailure::already_initialized().into(),
        SignInError::NoPassword => {
            SignInFailure::password_change("OAuth users cannot change password").into()
        }
        SignInError::WrongPassword => {
            SignInFailure::password_change("Current password is incorrect").into()
        }
        SignInError::NotFound => SignInFailure::unknown_user().into(),
        SignInError::LastAdministrator | SignInError::NoAdministrator => ApiError::Conflict(text),
        SignInError::Store(error) => error.into(),
    }
}

/// Violation of a rule in the form that the web UI shows. The value is not repeated: it may be a
/// password.
pub(super) fn value_error(field: &str, message: String) -> ApiError {
    let loc = vec!["body".into(), field.into()];
    ApiError::issue(Issue::new("value_error", loc, message, &Value::Null))
}

/// Returns whole seconds, rounded up, at least one.
fn seconds(duration: Duration) -> u64 {
    duration
        .as_millis()
        .div_ceil(1_000)
        .try_into()
        .unwrap_or(1)
        .max(1)
}

#[cfg(test)]
mod tests {
    use deerflow_domain::accounts::{InvalidEmail, InvalidPassword};

    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn rules_are_value_errors_with_texts_as_location() {
        for (error, field) in [
            (SignInError::InvalidEmail(InvalidEmail::Malformed), "email"),
            (
                SignInError::InvalidPassword(InvalidPassword::TooShort),
                "new_password",
            ),
        ] {
            let refusal = refusal(error, "new_password");
            assert_eq!(refusal.status(Dialect::DeerFlow), 422);
            let detail = refusal.detail(Dialect::DeerFlow);
            assert_eq!(detail[0]["type"], "value_error");
            assert_eq!(detail[0]["loc"], serde_json::json!(["body", field]));
        }
    }

    #[test]
    fn waits_are_rounded_up_to_seconds() {
        for (milliseconds, expected) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (30_000, 30)] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), expected);
        }
    }
}
