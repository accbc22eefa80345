//! Deletion of an account with the rows and files of its user.

use std::sync::Arc;

use deerflow_domain::accounts::{
    AccountChange, AccountError, AccountStores, AuditAction, DeletedData, NewAuditEntry,
    SessionsAfter, UserData,
};
use harness::clock::Clock;
use harness::runtime::runs::store::StoreError;

use crate::session_cache::SessionCache;

/// Reason why an account was not deleted completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// The account was not touched.
    #[error(transparent)]
    Refused(#[from] AccountError),
    /// The account is disabled, and some of its data is deleted. A repetition deletes the rest.
    #[error("the account is disabled, but its data was not deleted completely, try again: {0}")]
    Incomplete(StoreError),
}

/// Deletes accounts.
#[derive(Debug, Clone)]
pub struct AccountDeletion {
    stores: AccountStores,
    cache: Arc<SessionCache>,
    data: Vec<Arc<dyn UserData>>,
    clock: Arc<dyn Clock>,
}

impl AccountDeletion {
    /// Creates the operation. `data` has one entry per kind of rows or files.
    pub fn new(
        stores: AccountStores,
        cache: Arc<SessionCache>,
        data: Vec<Arc<dyn UserData>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            stores,
            cache,
            data,
            clock,
        }
    }

    /// Deletes an account and everything of its user; returns the numbers of deleted rows and files.
    ///
    /// The account is disabled first, so that nothing new is created meanwhile, and its row is
    /// deleted last, so that an interrupted deletion can be repeated. `entry` describes actor and
    /// client.
    pub async fn delete(
        &self,
        id: &str,
        entry: NewAuditEntry,
    ) -> Result<Vec<DeletedData>, DeletionError> {
        let disabled = AccountChange {
            disabled: Some(true),
            ..AccountChange::default()
        };
        let started = NewAuditEntry {
            action: AuditAction::AccountDisabled,
            object: Some(id.to_owned()),
            ..entry.clone()
        };
        let (sessions, now) = (SessionsAfter::EndAll, self.clock.now());
        let accounts = &self.stores.accounts;
        accounts
            .change(id, disabled, sessions, vec![started], now)
            .await?;
        self.cache.forget_user(id);
        let mut deleted = Vec::new();
        for data in &self.data {
            let data = data.delete_all(id).await;
            deleted.push(data.map_err(DeletionError::Incomplete)?);
        }
        let ended = NewAuditEntry {
            action: AuditAction::AccountDeleted,
            object: Some(id.to_owned()),
            ..entry
        };
        accounts.delete(id, ended).await?;
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use deerflow_domain::accounts::InMemoryAccounts;
    use deerflow_domain::testkit::accounts::account;
    use harness::clock::ManualClock;
    use harness::testkit::at;
    use parking_lot::Mutex;

    use super::*;

    /// Data whose first deletions fail.
    #[derive(Debug)]
    struct Flaky(Mutex<u32>);

    #[async_trait]
    impl UserData for Flaky {
        async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
            assert_eq!(user, "ann");
            let mut failures = self.0.lock();
            if *failures > 0 {
                *failures -= 1;
                return Err(StoreError::Failed("injected".to_owned()));
            }
            Ok(DeletedData {
                kind: "threads".to_owned(),
                count: 3,
            })
        }
    }

    #[tokio::test]
    async fn interrupted_deletion_leaves_disabled_account_to_repeat() {
        let stores = Arc::new(InMemoryAccounts::default()).stores();
        let entry = NewAuditEntry::new(AuditAction::AccountDeleted, at(0));
        let ann = account("ann", "ann@example.org");
        stores
            .accounts
            .import(vec![ann], entry.clone())
            .await
            .unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::starting_at(at(0)));
        let cache = Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone()));
        let data: Vec<Arc<dyn UserData>> = vec![Arc::new(Flaky(Mutex::new(1)))];
        let deletion = AccountDeletion::new(stores.clone(), cache, data, clock);
        let delete = async || deletion.delete("ann", entry.clone()).await;
        assert!(matches!(delete().await, Err(DeletionError::Incomplete(_))));
        let left = stores.accounts.find("ann").await.unwrap().unwrap();
        assert!(!left.is_enabled());
        let deleted = delete().await.unwrap();
        assert_eq!((deleted[0].kind.as_str(), deleted[0].count), ("threads", 3));
        assert_eq!(stores.accounts.find("ann").await, Ok(None));
        let absent = Err(DeletionError::Refused(AccountError::NotFound));
        assert_eq!(delete().await, absent);
    }
}
