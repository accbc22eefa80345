//! Errors of account and session stores.

use deerflow_runtime::runs::store::StoreError;

/// Reason why a store refused a change of accounts or sessions. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// Another account has this e-mail.
    #[error("an account with this e-mail address exists")]
    EmailTaken,
    /// Another account has this identity.
    #[error("an account with this identity exists")]
    IdentityTaken,
    /// The account was to be the first administrator, and there is one.
    #[error("the system has an administrator already")]
    AdministratorExists,
    /// The change would leave no enabled administrator.
    #[error("the last enabled administrator cannot be demoted, disabled or deleted")]
    LastAdministrator,
    /// A promotion was to make the first administrator.
    #[error(
        "there is no administrator yet: create the first one, who receives the data of the time before sign-in"
    )]
    NoAdministrator,
    /// The account does not exist.
    #[error("the account does not exist")]
    NotFound,
    /// The account is disabled.
    #[error("the account is disabled")]
    Disabled,
    /// The password was changed after the caller verified it.
    #[error("the password was changed meanwhile")]
    PasswordChanged,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
