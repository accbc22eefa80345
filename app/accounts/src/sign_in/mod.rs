//! Sign-in with a password or through a provider, registration, setup, change of a password, logout,
//! and management of accounts.

mod attempt;
mod change;
mod error;
mod login;
mod manage;
mod provider;
mod register;

use std::sync::Arc;

use deerflow_domain::accounts::{
    Account, AccountStores, AuditAction, NewAuditEntry, NewSession, PasswordHash, Session,
};
use harness::clock::Clock;
use harness::ids::IdSource;
use secrecy::SecretString;

use crate::client::Client;
use crate::password::PasswordPool;
use crate::session_cache::SessionCache;
use crate::token::SessionToken;

pub use change::PasswordChange;
pub use error::SignInError;
pub use manage::{CreatedUser, NewUser, UserChange};
pub use provider::{ProviderAttempt, ProviderRefusal};

/// Parts of the sign-in service.
#[derive(Debug, Clone)]
pub struct SignInParts {
    /// Stores.
    pub stores: AccountStores,
    /// Pool of hash computations.
    pub passwords: PasswordPool,
    /// Sessions that this node remembers.
    pub cache: Arc<SessionCache>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Source of the ids of accounts, sessions and attempts.
    pub ids: Arc<dyn IdSource>,
}

/// Signs people in and out.
#[derive(Debug)]
pub struct SignIn {
    parts: SignInParts,
    /// Held while the first administrator is created: the callers after the first are refused without
    /// computing a hash.
    initializing: tokio::sync::Mutex<()>,
}

/// Entered e-mail and password.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// E-mail as entered.
    pub email: String,
    /// Password.
    pub password: SecretString,
    /// `true` if the person wants to stay signed in when the browser closes.
    pub persistent: bool,
}

/// Person that has signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// Account.
    pub account: Account,
    /// Session.
    pub session: Session,
    /// Token of the session, which is not stored.
    pub token: SessionToken,
}

impl SignIn {
    /// Creates the service.
    pub fn new(parts: SignInParts) -> Self {
        Self {
            parts,
            initializing: tokio::sync::Mutex::default(),
        }
    }

    /// Signs the person of an account in who has proved the identity without a password, such as
    /// through an identity provider.
    pub async fn start_session(
        &self,
        account: &Account,
        persistent: bool,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        self.start(account, None, persistent, client).await
    }

    /// Starts a session. `verified` is the hash that the password was verified against.
    async fn start(
        &self,
        account: &Account,
        verified: Option<PasswordHash>,
        persistent: bool,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let (session, token) = self.new_session(&account.id, persistent, client);
        let entry = NewAuditEntry::new(AuditAction::SignIn, session.created_at)
            .by(&account.id)
            .on(&*account.id);
        let new = NewSession {
            session: session.clone(),
            if_password: verified,
        };
        let sessions = &self.parts.stores.sessions;
        let account = sessions.start(new, client.sign(entry)).await?;
        Ok(SignedIn {
            account,
            session,
            token,
        })
    }

    fn new_session(
        &self,
        user: &str,
        persistent: bool,
        client: &Client,
    ) -> (Session, SessionToken) {
        let token = SessionToken::generate();
        let now = self.parts.clock.now();
        let session = Session {
            id: self.parts.ids.random(),
            user_id: user.to_owned(),
            token_hash: token.hash(),
            created_at: now,
            last_used_at: now,
            persistent,
            user_agent: client.short_agent(),
            address: Some(client.address.to_canonical().to_string()),
        };
        (session, token)
    }

    /// Ends the session of a token; `false` if there is none.
    pub async fn logout(&self, token: &str, client: &Client) -> Result<bool, SignInError> {
        let hash = deerflow_domain::accounts::TokenHash::of(token);
        let sessions = &self.parts.stores.sessions;
        let Some((session, _)) = sessions.find(&hash).await? else {
            return Ok(false);
        };
        let entry = NewAuditEntry::new(AuditAction::SessionEnded, self.parts.clock.now())
            .by(&session.user_id)
            .on(session.id.to_string());
        let ended = sessions
            .end(&session.user_id, session.id, client.sign(entry))
            .await?;
        self.parts.cache.forget(&hash);
        Ok(ended)
    }
}

#[cfg(test)]
#[path = "sign_in_tests.rs"]
mod tests;
