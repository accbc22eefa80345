//! Change of a password by its owner.

use deerflow_domain::accounts::{
    Account, AccountChange, AccountError, AuditAction, Email, NewAuditEntry, SessionsAfter,
    check_password,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::attempt::{Guess, RightPassword};
use super::{SignIn, SignInError, SignedIn};
use crate::client::Client;

/// Change of a password.
#[derive(Debug, Clone)]
pub struct PasswordChange {
    /// Current password.
    pub current: SecretString,
    /// New password.
    pub new: SecretString,
    /// New e-mail; also ends the obligation of a setup.
    pub new_email: Option<String>,
    /// Wish of the person to stay signed in when the browser closes.
    pub persistent: bool,
}

impl SignIn {
    /// Changes the password of a signed-in person. All sessions end, and a new one starts: a copied
    /// token is of no use afterwards. Guesses of the current password count like sign-ins.
    pub async fn change_password(
        &self,
        account: &Account,
        change: &PasswordChange,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let new_email = change.new_email.as_deref().map(str::trim).map(Email::parse);
        let new_email = new_email.transpose()?;
        let email = new_email.as_ref().unwrap_or(&account.email);
        check_password(change.new.expose_secret(), email)?;
        if account.password_hash.is_none() {
            return Err(SignInError::NoPassword);
        }
        let guess = Guess {
            account: Some(account),
            email: account.email.as_str(),
            password: &change.current,
            action: AuditAction::PasswordChanged,
        };
        let right = self.guess(guess, client).await?;
        let right = right.ok_or(SignInError::WrongPassword)?;
        let changed = self.apply(account, change, new_email, client).await;
        self.finish(&right, changed.is_ok()).await?;
        changed
    }

    async fn finish(&self, right: &RightPassword, succeeded: bool) -> Result<(), SignInError> {
        if succeeded {
            self.accept(right).await
        } else {
            self.withdraw(right).await
        }
    }

    async fn apply(
        &self,
        account: &Account,
        change: &PasswordChange,
        new_email: Option<Email>,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let accounts = &self.parts.stores.accounts;
        if let Some(email) = &new_email {
            let holder = accounts.find_by_email(email).await?;
            if holder.is_some_and(|holder| holder.id != account.id) {
                return Err(SignInError::EmailTaken);
            }
        }
        let hash = self.parts.passwords.hash(&change.new).await?;
        let (session, token) = self.new_session(&account.id, change.persistent, client);
        let at = session.created_at;
        let entry = |action| {
            let entry = NewAuditEntry::new(action, at).by(&account.id);
            client.sign(entry.on(&*account.id))
        };
        let mut entries = vec![entry(AuditAction::PasswordChanged)];
        if new_email
            .as_ref()
            .is_some_and(|email| *email != account.email)
        {
            entries.push(entry(AuditAction::AccountEmail));
        }
        let fields = AccountChange {
            password_hash: Some(hash),
            needs_setup: new_email.is_some().then_some(false),
            email: new_email,
            if_password: account.password_hash.clone(),
            ..AccountChange::default()
        };
        let replaced = SessionsAfter::Replace(Box::new(session.clone()));
        let changed = accounts
            .change(&account.id, fields, replaced, entries, at)
            .await;
        let account = changed.map_err(|error| match error {
            AccountError::PasswordChanged => SignInError::WrongPassword,
            other => other.into(),
        })?;
        self.parts.cache.forget_user(&account.id);
        Ok(SignedIn {
            account,
            session,
            token,
        })
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
