//! Leases of accounts in memory.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::InMemoryChannels;
use crate::channels::lease::lease_end;
use crate::channels::{Account, AccountClaim, AccountLeases, ChannelStoreError, LeaseRecord};

#[async_trait]
impl AccountLeases for InMemoryChannels {
    async fn acquire(
        &self,
        account: &Account,
        node: &str,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<Option<AccountClaim>, ChannelStoreError> {
        let mut tables = self.0.lock();
        let known = tables.leases.get(account);
        let end = lease_end(at, duration);
        let is_held = |lease: &LeaseRecord| {
            lease.expires_at > at && lease.expires_at <= end + TimeDelta::hours(1)
        };
        if known.is_some_and(|lease| lease.claim.node != node && is_held(lease)) {
            return Ok(None);
        }
        let claim = AccountClaim {
            account: account.clone(),
            epoch: known.map_or(0, |lease| lease.claim.epoch) + 1,
            node: node.to_owned(),
        };
        let lease = LeaseRecord {
            claim: claim.clone(),
            since: at,
            expires_at: end,
        };
        tables.leases.insert(account.clone(), lease);
        Ok(Some(claim))
    }

    async fn renew(
        &self,
        claim: &AccountClaim,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        if let Some(lease) = tables.leases.get_mut(&claim.account) {
            lease.expires_at = lease_end(at, duration);
        }
        Ok(())
    }

    async fn release(
        &self,
        claim: &AccountClaim,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        if let Some(lease) = tables.leases.get_mut(&claim.account)
            && lease.claim.epoch == claim.epoch
        {
            lease.expires_at = lease.expires_at.min(at);
        }
        Ok(())
    }

    async fn lease(&self, account: &Account) -> Result<Option<LeaseRecord>, ChannelStoreError> {
        Ok(self.0.lock().leases.get(account).cloned())
    }

    async fn all(&self) -> Result<Vec<LeaseRecord>, ChannelStoreError> {
        Ok(self.0.lock().leases.values().cloned().collect())
    }

    async fn revoke(
        &self,
        account: &Account,
        free_at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError> {
        let mut tables = self.0.lock();
        let Some(lease) = tables.leases.get_mut(account) else {
            return Ok(false);
        };
        lease.claim.epoch += 1;
        lease.claim.node.clear();
        lease.expires_at = lease.expires_at.min(free_at);
        Ok(true)
    }
}
