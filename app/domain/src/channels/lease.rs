//! Leases of accounts.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Account, AccountClaim, ChannelStoreError};

/// Stored lease of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Newest claim.
    pub claim: AccountClaim,
    /// Time of its acquisition.
    pub since: DateTime<Utc>,
    /// Time at which another node may acquire the account.
    pub expires_at: DateTime<Utc>,
}

/// Returns the end of a lease that is acquired or renewed at `at`.
pub fn lease_end(at: DateTime<Utc>, duration: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(duration)
        .ok()
        .and_then(|duration| at.checked_add_signed(duration))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Leases of accounts. Times are those of the store's clock. A lease that was released or has
/// expired can be acquired, and so can one that ends more than an hour after a lease acquired now: it
/// is from a time when the clock was wrong.
#[async_trait]
pub trait AccountLeases: Send + Sync + std::fmt::Debug {
    /// Acquires the account, unless another node holds it. A node that already holds it gets a new
    /// epoch too: its earlier claim becomes invalid.
    async fn acquire(
        &self,
        account: &Account,
        node: &str,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<Option<AccountClaim>, ChannelStoreError>;

    /// Extends a lease, also an expired one that no other node has acquired.
    ///
    /// # Errors
    /// [`ChannelStoreError::Fenced`] if the account was acquired again.
    async fn renew(
        &self,
        claim: &AccountClaim,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Ends a lease, so that another node can acquire it at once. Has no effect if the claim is not
    /// the newest.
    async fn release(
        &self,
        claim: &AccountClaim,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Returns the lease of an account, also an expired one.
    async fn lease(&self, account: &Account) -> Result<Option<LeaseRecord>, ChannelStoreError>;

    /// Returns the leases of all accounts, also expired ones, ordered by account.
    async fn all(&self) -> Result<Vec<LeaseRecord>, ChannelStoreError>;

    /// Invalidates the newest claim of an account: its holder can neither renew it nor write. The
    /// lease then belongs to no node, and any node can acquire it from `free_at` on, or from its
    /// end if that is earlier. Returns `false` if the account was never acquired.
    async fn revoke(
        &self,
        account: &Account,
        free_at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError>;
}
