//! Errors of sign-in.

use std::time::Duration;

use deerflow_domain::accounts::{AccountError, InvalidEmail, InvalidPassword};
use harness::runtime::runs::store::StoreError;

use crate::password::Busy;

/// Reason why a sign-in, a registration or a change of an account was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// Unknown e-mail, account without password, or wrong password.
    #[error("incorrect email or password")]
    BadCredentials,
    /// The account is disabled; only returned for the right password.
    #[error("the account is disabled")]
    Disabled,
    /// A limit refuses the attempt.
    #[error("too many attempts, try again in {} s", .retry_after.as_secs().max(1))]
    Limited {
        /// Time after which an attempt is possible.
        retry_after: Duration,
    },
    /// All slots for password hashes are taken.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The e-mail is not valid.
    #[error(transparent)]
    InvalidEmail(#[from] InvalidEmail),
    /// The new password breaks a rule.
    #[error(transparent)]
    InvalidPassword(#[from] InvalidPassword),
    /// Another account has this e-mail.
    #[error("an account with this e-mail address exists")]
    EmailTaken,
    /// There is an administrator.
    #[error("the system has an administrator already")]
    AdministratorExists,
    /// The account has no password: the person signs in through a provider.
    #[error("the account has no password")]
    NoPassword,
    /// The current password is wrong.
    #[error("the current password is incorrect")]
    WrongPassword,
    /// The account was deleted meanwhile.
    #[error("the account does not exist")]
    NotFound,
    /// The change would leave no enabled administrator.
    #[error("the last enabled administrator cannot be demoted, disabled or deleted")]
    LastAdministrator,
    /// A promotion was to make the first administrator.
    #[error(
        "there is no administrator yet: create the first one, who receives the data of the time before sign-in"
    )]
    NoAdministrator,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AccountError> for SignInError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::EmailTaken | AccountError::IdentityTaken => Self::EmailTaken,
            AccountError::AdministratorExists => Self::AdministratorExists,
            AccountError::NotFound => Self::NotFound,
            AccountError::Disabled => Self::Disabled,
            // The verified password is not the current one any more.
            AccountError::PasswordChanged => Self::BadCredentials,
            AccountError::Store(error) => Self::Store(error),
            AccountError::LastAdministrator => Self::LastAdministrator,
            AccountError::NoAdministrator => Self::NoAdministrator,
        }
    }
}
