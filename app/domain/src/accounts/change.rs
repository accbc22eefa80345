//! Change of an account, and the rules that concern administrators.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::account::{Account, PasswordHash, ProviderIdentity, Role};
use super::email::Email;
use super::error::AccountError;
use super::session::Session;

/// Fields to change; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// New role.
    pub role: Option<Role>,
    /// `true` disables, `false` enables.
    pub disabled: Option<bool>,
    /// New password hash.
    pub password_hash: Option<PasswordHash>,
    /// New e-mail.
    pub email: Option<Email>,
    /// New value of the obligation to choose a password.
    pub needs_setup: Option<bool>,
    /// Identity to link.
    pub identity: Option<ProviderIdentity>,
    /// `true` if the account loses its password and its API keys: another person may have created
    /// them.
    pub drops_credentials: bool,
    /// Hash that the caller verified a password against. If the stored one differs by now, the
    /// change is refused.
    pub if_password: Option<PasswordHash>,
}

impl AccountChange {
    /// Returns the changed account. Rules that concern other accounts are checked by the store.
    pub fn apply(&self, account: &Account, at: DateTime<Utc>) -> Result<Account, AccountError> {
        if self.if_password.is_some() && self.if_password != account.password_hash {
            return Err(AccountError::PasswordChanged);
        }
        let mut changed = account.clone();
        changed.updated_at = at;
        if let Some(role) = self.role {
            changed.role = role;
        }
        match self.disabled {
            Some(true) => changed.disabled_at = changed.disabled_at.or(Some(at)),
            Some(false) => changed.disabled_at = None,
            None => {}
        }
        if self.drops_credentials {
            changed.password_hash = None;
            changed.needs_setup = false;
        }
        if let Some(hash) = &self.password_hash {
            changed.password_hash = Some(hash.clone());
        }
        if let Some(email) = &self.email {
            changed.email = email.clone();
        }
        if let Some(needs_setup) = self.needs_setup {
            changed.needs_setup = needs_setup;
        }
        if let Some(identity) = &self.identity {
            // An account belongs to one person.
            if changed.identity.as_ref().is_some_and(|old| old != identity) {
                return Err(AccountError::IdentityTaken);
            }
            changed.identity = Some(identity.clone());
        }
        Ok(changed)
    }
}

/// Effect of a change on the sessions of the account, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsAfter {
    /// All sessions continue.
    Unchanged,
    /// All sessions end.
    EndAll,
    /// All sessions but this one end.
    EndAllBut(Uuid),
    /// All sessions end and this one starts, so that a copied token is of no use after a change of
    /// the password.
    Replace(Box<Session>),
}

/// Checks the rules of administrators. `after` is `None` for a deletion; `enabled_others` counts
/// the other enabled administrators, and `administrators` all of them, disabled ones and this
/// account included.
pub fn check_administrators(
    before: &Account,
    after: Option<&Account>,
    enabled_others: u64,
    administrators: u64,
) -> Result<(), AccountError> {
    let stays = after.is_some_and(Account::is_enabled_admin);
    if before.is_enabled_admin() && !stays && enabled_others == 0 {
        return Err(AccountError::LastAdministrator);
    }
    let promoted =
        before.role == Role::User && after.is_some_and(|account| account.role == Role::Admin);
    if promoted && administrators == 0 {
        return Err(AccountError::NoAdministrator);
    }
    Ok(())
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
