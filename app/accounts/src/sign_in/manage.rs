//! Management of accounts by administrators, and by operators at the command line.

use deerflow_domain::accounts::{
    Account, AccountChange, Admission, AuditAction, Email, NewAccount, NewAuditEntry, Role,
    SessionsAfter, check_password,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::{SignIn, SignInError};
use crate::operator::Operator;
use crate::token::SessionToken;

/// Length of a generated password, in characters of 6 random bits.
const GENERATED_LENGTH: usize = 24;

/// User to be created.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// E-mail as entered.
    pub email: String,
    /// Role.
    pub role: Role,
    /// Password; without one it is generated, and the person has to choose another one.
    pub password: Option<SecretString>,
}

/// Created user.
#[derive(Debug, Clone)]
pub struct CreatedUser {
    /// Account.
    pub account: Account,
    /// Password, if it was generated.
    pub generated: Option<SecretString>,
}

/// Change of a user; absent fields stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserChange {
    /// New role.
    pub role: Option<Role>,
    /// `true` disables the account and ends its sessions, `false` enables it.
    pub disabled: Option<bool>,
}

impl SignIn {
    /// Creates an account.
    pub async fn create_user(
        &self,
        new: &NewUser,
        operator: &Operator,
    ) -> Result<CreatedUser, SignInError> {
        let email = Email::parse(new.email.trim())?;
        if let Some(password) = &new.password {
            check_password(password.expose_secret(), &email)?;
        }
        let accounts = &self.parts.stores.accounts;
        if accounts.find_by_email(&email).await?.is_some() {
            return Err(SignInError::EmailTaken);
        }
        let generated = new.password.is_none().then(generate_password);
        let password = new.password.as_ref().or(generated.as_ref());
        let hash = match password {
            Some(password) => Some(self.parts.passwords.hash(password).await?),
            None => None,
        };
        let at = self.parts.clock.now();
        let account = NewAccount {
            id: self.parts.ids.random().to_string(),
            email,
            role: new.role,
            password_hash: hash,
            identity: None,
            needs_setup: generated.is_some(),
            admission: Admission::Always,
            at,
        };
        let entry = operator.sign(NewAuditEntry::new(AuditAction::AccountCreated, at));
        Ok(CreatedUser {
            account: accounts.create(account, entry).await?,
            generated,
        })
    }

    /// Changes role and state of an account. A new role holds for its sessions within a second.
    pub async fn change_user(
        &self,
        id: &str,
        change: UserChange,
        operator: &Operator,
    ) -> Result<Account, SignInError> {
        let accounts = &self.parts.stores.accounts;
        let before = accounts.find(id).await?.ok_or(SignInError::NotFound)?;
        let at = self.parts.clock.now();
        let role = change.role.filter(|role| *role != before.role);
        let disabled = change
            .disabled
            .filter(|disabled| *disabled == before.is_enabled());
        let entry = |action| operator.sign(NewAuditEntry::new(action, at).on(id));
        let mut entries = Vec::new();
        entries.extend(role.map(|_| entry(AuditAction::RoleChanged)));
        entries.extend(disabled.map(|disabled| {
            entry(if disabled {
                AuditAction::AccountDisabled
            } else {
                AuditAction::AccountEnabled
            })
        }));
        if entries.is_empty() {
            return Ok(before);
        }
        let fields = AccountChange {
            role,
            disabled,
            ..AccountChange::default()
        };
        let sessions = if disabled == Some(true) {
            SessionsAfter::EndAll
        } else {
            SessionsAfter::Unchanged
        };
        let changed = accounts.change(id, fields, sessions, entries, at).await?;
        self.parts.cache.forget_user(id);
        Ok(changed)
    }

    /// Sets a random password, which its owner has to change at the next sign-in, and ends all
    /// sessions.
    pub async fn reset_password(
        &self,
        id: &str,
        operator: &Operator,
    ) -> Result<(Account, SecretString), SignInError> {
        let password = generate_password();
        let at = self.parts.clock.now();
        let entry = operator.sign(NewAuditEntry::new(AuditAction::PasswordReset, at).on(id));
        let fields = AccountChange {
            password_hash: Some(self.parts.passwords.hash(&password).await?),
            needs_setup: Some(true),
            ..AccountChange::default()
        };
        let accounts = &self.parts.stores.accounts;
        let sessions = SessionsAfter::EndAll;
        let account = accounts
            .change(id, fields, sessions, vec![entry], at)
            .await?;
        self.parts.cache.forget_user(id);
        Ok((account, password))
    }
}

/// Returns a random password. A session token has more than enough characters and entropy.
fn generate_password() -> SecretString {
    SessionToken::generate().expose()[..GENERATED_LENGTH]
        .to_owned()
        .into()
}

#[cfg(test)]
#[path = "manage_tests.rs"]
mod tests;
