//! Verification of a password within the limits of sign-in.

use std::time::Duration;

use deerflow_domain::accounts::{
    Account, AttemptKey, AuditAction, AuditOutcome, LoginVerdict, NewAuditEntry,
};
use secrecy::SecretString;
use tokio::time::Instant;

use super::{SignIn, SignInError};
use crate::client::Client;
use crate::password::{Busy, SLOT_TIMEOUT, Verification};

/// Interval between decisions while other attempts may use up a limit.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Password to verify.
pub(super) struct Guess<'a> {
    /// Account, if the e-mail is one.
    pub(super) account: Option<&'a Account>,
    /// E-mail as entered, in lower case.
    pub(super) email: &'a str,
    /// Password.
    pub(super) password: &'a SecretString,
    /// Recorded action.
    pub(super) action: AuditAction,
}

/// Attempt whose password was verified and is right.
pub(super) struct RightPassword {
    key: AttemptKey,
    pub(super) verification: Verification,
}

impl SignIn {
    /// Verifies a password unless a limit refuses the attempt. A wrong one is recorded as failure;
    /// the caller ends a right one by [`SignIn::accept`] or [`SignIn::withdraw`].
    pub(super) async fn guess(
        &self,
        guess: Guess<'_>,
        client: &Client,
    ) -> Result<Option<RightPassword>, SignInError> {
        let limits = &self.parts.stores.limits;
        let subject = match guess.account {
            Some(account) => format!("account {}", account.id),
            None => format!("e-mail {}", guess.email),
        };
        let key = AttemptKey::new(self.parts.ids.random(), &subject, client.key());
        self.admit(&key).await?;
        let stored = guess
            .account
            .and_then(|account| account.password_hash.as_ref());
        let verification = match self.parts.passwords.verify(guess.password, stored).await {
            Ok(verification) => verification,
            Err(busy) => {
                limits.withdraw(&key).await?;
                return Err(busy.into());
            }
        };
        if verification.matches {
            return Ok(Some(RightPassword { key, verification }));
        }
        let mut entry = NewAuditEntry::new(guess.action, self.parts.clock.now())
            .with_outcome(AuditOutcome::Failure);
        // A person may have entered the password as e-mail: only ids are recorded.
        entry.object = guess.account.map(|account| account.id.clone());
        limits.fail(&key, client.sign(entry)).await?;
        Ok(None)
    }

    /// Records a right password: the address is exempt for this account from now on.
    pub(super) async fn accept(&self, right: &RightPassword) -> Result<(), SignInError> {
        let now = self.parts.clock.now();
        Ok(self.parts.stores.limits.succeed(&right.key, now).await?)
    }

    /// Removes an attempt that neither succeeded nor failed.
    pub(super) async fn withdraw(&self, right: &RightPassword) -> Result<(), SignInError> {
        Ok(self.parts.stores.limits.withdraw(&right.key).await?)
    }

    /// Exempts the address of a new account's registration.
    pub(super) async fn remember(
        &self,
        account: &Account,
        client: &Client,
    ) -> Result<(), SignInError> {
        let subject = format!("account {}", account.id);
        let key = AttemptKey::new(self.parts.ids.random(), &subject, client.key());
        let now = self.parts.clock.now();
        Ok(self.parts.stores.limits.succeed(&key, now).await?)
    }

    /// Waits until the limits permit the attempt; it is pending then.
    pub(super) async fn admit(&self, key: &AttemptKey) -> Result<(), SignInError> {
        let deadline = Instant::now() + SLOT_TIMEOUT;
        loop {
            let now = self.parts.clock.now();
            match self.parts.stores.limits.begin(key, now).await? {
                LoginVerdict::Verify => return Ok(()),
                LoginVerdict::Refuse { retry_after } => {
                    return Err(SignInError::Limited { retry_after });
                }
                LoginVerdict::Wait if Instant::now() >= deadline => {
                    return Err(Busy::default().into());
                }
                LoginVerdict::Wait => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}
