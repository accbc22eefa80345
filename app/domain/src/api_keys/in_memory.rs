//! API keys in memory.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::{ApiKey, ApiKeyStore, KeyCreation, KeyHash};
use crate::accounts::{AccountStore, AuditLog, InMemoryAccounts, NewAuditEntry, Role};

/// API keys in memory, for tests and embedders.
#[derive(Debug, Default)]
pub struct InMemoryApiKeyStore {
    keys: Mutex<Vec<(ApiKey, KeyHash)>>,
    accounts: Option<Arc<InMemoryAccounts>>,
}

impl InMemoryApiKeyStore {
    /// Creates a store of keys of these accounts.
    pub fn with_accounts(accounts: Arc<InMemoryAccounts>) -> Self {
        Self {
            keys: Mutex::default(),
            accounts: Some(accounts),
        }
    }

    fn is_refused(&self, key: &ApiKey) -> bool {
        let accounts = self.accounts.as_ref();
        accounts.is_some_and(|accounts| accounts.refuses_key(&key.user_id, key.created_at))
    }

    async fn audit(&self, entry: NewAuditEntry) -> Result<(), StoreError> {
        match &self.accounts {
            Some(accounts) => accounts.append(entry).await,
            None => Ok(()),
        }
    }

    /// Revokes the selected live keys; returns their number.
    fn revoke_where(&self, at: DateTime<Utc>, selects: impl Fn(&ApiKey) -> bool) -> u64 {
        let mut keys = self.keys.lock();
        let live = keys
            .iter_mut()
            .map(|(key, _)| key)
            .filter(|key| key.revoked_at.is_none() && selects(key));
        live.map(|key| key.revoked_at = Some(at)).count() as u64
    }
}

#[async_trait]
impl ApiKeyStore for InMemoryApiKeyStore {
    async fn create(
        &self,
        key: ApiKey,
        hash: KeyHash,
        entry: NewAuditEntry,
    ) -> Result<(), StoreError> {
        self.keys.lock().push((key, hash));
        self.audit(entry).await
    }

    async fn create_own(
        &self,
        key: ApiKey,
        hash: KeyHash,
        maximum: u64,
        entry: NewAuditEntry,
    ) -> Result<KeyCreation, StoreError> {
        let account = match &self.accounts {
            Some(accounts) => AccountStore::find(&**accounts, &key.user_id).await?,
            None => None,
        };
        if !account.is_some_and(|account| account.is_enabled()) {
            return Ok(KeyCreation::NoAccount);
        }
        {
            let mut keys = self.keys.lock();
            let live = keys.iter().filter(|(other, _)| {
                other.user_id == key.user_id && other.is_valid(key.created_at)
            });
            if live.count() as u64 >= maximum {
                return Ok(KeyCreation::TooMany);
            }
            keys.push((key, hash));
        }
        self.audit(entry).await?;
        Ok(KeyCreation::Created)
    }

    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError> {
        let found = self
            .keys
            .lock()
            .iter()
            .find(|(key, _)| key.key_id == key_id)
            .cloned();
        let Some((mut key, hash)) = found.filter(|(key, _)| !self.is_refused(key)) else {
            return Ok(None);
        };
        if let Some(accounts) = &self.accounts
            && let Some(owner) = AccountStore::find(&**accounts, &key.user_id).await?
        {
            key.is_admin &= owner.role == Role::Admin;
        }
        Ok(Some((key, hash)))
    }

    async fn list(&self, user: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.keys.lock();
        Ok(keys
            .iter()
            .map(|(key, _)| key)
            .filter(|key| user.is_none_or(|user| key.user_id == user))
            .cloned()
            .collect())
    }

    async fn revoke(&self, key_id: &str, entry: NewAuditEntry) -> Result<bool, StoreError> {
        let exists = {
            let mut keys = self.keys.lock();
            let found = keys
                .iter_mut()
                .map(|(key, _)| key)
                .find(|key| key.key_id == key_id);
            found
                .map(|key| key.revoked_at.get_or_insert(entry.at))
                .is_some()
        };
        if exists {
            self.audit(entry).await?;
        }
        Ok(exists)
    }

    async fn revoke_own(
        &self,
        user: &str,
        key_id: &str,
        entry: NewAuditEntry,
    ) -> Result<bool, StoreError> {
        let revoked =
            self.revoke_where(entry.at, |key| key.user_id == user && key.key_id == key_id) > 0;
        if revoked {
            self.audit(entry).await?;
        }
        Ok(revoked)
    }

    async fn revoke_all(&self, user: &str, at: DateTime<Utc>) -> Result<u64, StoreError> {
        Ok(self.revoke_where(at, |key| key.user_id == user))
    }
}
