//! Sign-in with e-mail and password.

use deerflow_domain::accounts::{AuditAction, Email, PasswordHash};
use secrecy::SecretString;

use super::attempt::Guess;
use super::{Credentials, SignIn, SignInError, SignedIn};
use crate::client::Client;

impl SignIn {
    /// Signs in. Unknown e-mail, account without password and wrong password are refused alike,
    /// after the same work.
    pub async fn login(
        &self,
        entered: &Credentials,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let email = entered.email.trim().to_lowercase();
        let account = match Email::parse(&email) {
            Ok(email) => self.parts.stores.accounts.find_by_email(&email).await?,
            Err(_) => None,
        };
        let guess = Guess {
            account: account.as_ref(),
            email: &email,
            password: &entered.password,
            action: AuditAction::SignIn,
        };
        let right = self.guess(guess, client).await?;
        let (Some(right), Some(account)) = (right, account) else {
            return Err(SignInError::BadCredentials);
        };
        let verified = account.password_hash.clone();
        let started = self
            .start(&account, verified.clone(), entered.persistent, client)
            .await;
        let mut signed_in = match started {
            Ok(signed_in) => signed_in,
            Err(error) => {
                self.withdraw(&right).await?;
                return Err(match error {
                    SignInError::NotFound => SignInError::BadCredentials,
                    other => other,
                });
            }
        };
        self.accept(&right).await?;
        if right.verification.needs_rehash
            && let Some(old) = verified
            && let Some(new) = self.rehash(&account.id, &old, &entered.password).await
        {
            signed_in.account.password_hash = Some(new);
        }
        Ok(signed_in)
    }

    /// Replaces the hash of an old algorithm. A failure does not concern the sign-in; the next one
    /// tries again.
    async fn rehash(
        &self,
        id: &str,
        old: &PasswordHash,
        password: &SecretString,
    ) -> Option<PasswordHash> {
        let replaced = async {
            let new = self.parts.passwords.hash(password).await?;
            let accounts = &self.parts.stores.accounts;
            let replaced = accounts.rehash(id, old, new.clone()).await?;
            Ok::<_, SignInError>(replaced.then_some(new))
        };
        replaced.await.unwrap_or_else(|error| {
            tracing::warn!(%error, user = id, "password hash was not replaced");
            None
        })
    }
}
