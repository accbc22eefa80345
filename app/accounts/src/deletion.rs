//! Deletion of an account with the rows and files of its user.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::accounts::{
    AccountChange, AccountError, AccountStores, AuditAction, DeletedData, NewAuditEntry,
    SessionsAfter, UserData,
};
use harness::clock::Clock;
use harness::runtime::runs::store::StoreError;

use crate::operator::Operator;
use crate::session_cache::{MAX_AGE, SessionCache};

/// Time after which the disabled account holds on every node, and the requests that began before
/// have written what they write.
const SETTLING_TIME: Duration = MAX_AGE.saturating_mul(2);
/// Maximum number of passes over all data.
const MAX_PASSES: usize = 5;

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
    /// Creates the operation. `data` has one entry per kind of rows or files, in the order of their
    /// deletion: what creates other data comes first.
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
    /// deleted last, so that an interrupted deletion can be repeated.
    pub async fn delete(
        &self,
        id: &str,
        operator: &Operator,
    ) -> Result<Vec<DeletedData>, DeletionError> {
        self.disable(id, operator).await?;
        tokio::time::sleep(SETTLING_TIME).await;
        let deleted = self.delete_data(id).await?;
        let ended = NewAuditEntry::new(AuditAction::AccountDeleted, self.clock.now()).on(id);
        let accounts = &self.stores.accounts;
        accounts.delete(id, operator.sign(ended)).await?;
        self.cache.forget_user(id);
        Ok(deleted)
    }

    async fn disable(&self, id: &str, operator: &Operator) -> Result<(), AccountError> {
        let now = self.clock.now();
        let accounts = &self.stores.accounts;
        let account = accounts.find(id).await?.ok_or(AccountError::NotFound)?;
        if account.is_enabled() {
            let disabled = AccountChange {
                disabled: Some(true),
                ..AccountChange::default()
            };
            let started = NewAuditEntry::new(AuditAction::AccountDisabled, now).on(id);
            let (sessions, entries) = (SessionsAfter::EndAll, vec![operator.sign(started)]);
            accounts
                .change(id, disabled, sessions, entries, now)
                .await?;
        }
        self.cache.forget_user(id);
        Ok(())
    }

    /// Deletes all data until a pass finds nothing: a run that was ending may have written after
    /// the deletion of its kind of data.
    async fn delete_data(&self, id: &str) -> Result<Vec<DeletedData>, DeletionError> {
        let mut deleted: Vec<DeletedData> = Vec::new();
        for _ in 0..MAX_PASSES {
            let mut found = 0;
            for data in &self.data {
                let data = data.delete_all(id).await;
                let data = data.map_err(DeletionError::Incomplete)?;
                found += data.count;
                match deleted.iter_mut().find(|known| known.kind == data.kind) {
                    Some(known) => known.count += data.count,
                    None => deleted.push(data),
                }
            }
            if found == 0 {
                return Ok(deleted);
            }
        }
        let text = "data of the user is still being written";
        Err(DeletionError::Incomplete(StoreError::Unavailable(
            text.to_owned(),
        )))
    }
}

#[cfg(test)]
#[path = "deletion_tests.rs"]
mod tests;
