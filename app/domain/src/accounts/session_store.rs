//! Port of sessions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use uuid::Uuid;

use super::account::{Account, PasswordHash};
use super::audit::NewAuditEntry;
use super::error::AccountError;
use super::session::{Session, TokenHash};

/// Session to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Session.
    pub session: Session,
    /// Hash that the caller verified the password against; `None` if the person signs in without
    /// one. If the stored hash differs by now, the start is refused.
    pub if_password: Option<PasswordHash>,
}

/// Stores sessions.
#[async_trait]
pub trait SessionStore: Send + Sync + std::fmt::Debug {
    /// Starts a session of an existing, enabled account and records the sign-in, in one
    /// transaction: a session never starts after its account was disabled, deleted, or got
    /// another password. Returns the account.
    async fn start(&self, new: NewSession, entry: NewAuditEntry) -> Result<Account, AccountError>;

    /// Returns a session with its account, also if it has ended by time or the account is
    /// disabled; see [`check_session`](super::check_session).
    async fn find(&self, hash: &TokenHash) -> Result<Option<(Session, Account)>, StoreError>;

    /// Sets the time of the last use, which never decreases; `false` if there is no such session.
    async fn extend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Ends a session of a user; `false`, without an audit entry, if the user has no such session.
    async fn end(&self, user: &str, id: Uuid, entry: NewAuditEntry) -> Result<bool, StoreError>;

    /// Ends all sessions of a user, except `but`; returns their number. Writes the entry if it is
    /// not 0.
    async fn end_all(
        &self,
        user: &str,
        but: Option<Uuid>,
        entry: NewAuditEntry,
    ) -> Result<u64, StoreError>;

    /// Returns the sessions of a user that are valid at `at`, the newest first.
    async fn list(&self, user: &str, at: DateTime<Utc>) -> Result<Vec<Session>, StoreError>;

    /// Deletes the sessions that have ended by time at `at`; returns their number.
    async fn purge(&self, at: DateTime<Utc>) -> Result<u64, StoreError>;
}
