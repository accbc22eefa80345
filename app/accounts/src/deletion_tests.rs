//! Tests of the deletion of accounts.

use async_trait::async_trait;
use deerflow_domain::accounts::InMemoryAccounts;
use deerflow_domain::testkit::accounts::account;
use harness::clock::ManualClock;
use harness::testkit::at;
use parking_lot::Mutex;

use super::*;

/// Data of `ann` with the results of its deletions, the last of which is repeated.
#[derive(Debug)]
struct Scripted(Mutex<Vec<Result<u64, StoreError>>>);

#[async_trait]
impl UserData for Scripted {
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
        assert_eq!(user, "ann");
        let mut results = self.0.lock();
        let result = match results.len() {
            1 => results[0].clone(),
            _ => results.remove(0),
        };
        Ok(DeletedData {
            kind: "threads".to_owned(),
            count: result?,
        })
    }
}

/// Imports `ann` and prepares the deletion of data with these results.
async fn deletion(results: Vec<Result<u64, StoreError>>) -> (AccountStores, AccountDeletion) {
    let stores = Arc::new(InMemoryAccounts::default()).stores();
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    let ann = account("ann", "ann@example.org");
    stores.accounts.import(vec![ann], entry).await.unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::starting_at(at(0)));
    let cache = Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone()));
    let data: Vec<Arc<dyn UserData>> = vec![Arc::new(Scripted(Mutex::new(results)))];
    (
        stores.clone(),
        AccountDeletion::new(stores, cache, data, clock),
    )
}

#[tokio::test(start_paused = true)]
async fn interrupted_deletion_leaves_disabled_account_to_repeat() {
    let failure = Err(StoreError::Failed("injected".to_owned()));
    let (stores, deletion) = deletion(vec![failure, Ok(3), Ok(0)]).await;
    let delete = async || deletion.delete("ann", &Operator::default()).await;
    assert!(matches!(delete().await, Err(DeletionError::Incomplete(_))));
    let left = stores.accounts.find("ann").await.unwrap().unwrap();
    assert!(!left.is_enabled());
    let deleted = delete().await.unwrap();
    assert_eq!((deleted[0].kind.as_str(), deleted[0].count), ("threads", 3));
    assert_eq!(stores.accounts.find("ann").await, Ok(None));
    let absent = Err(DeletionError::Refused(AccountError::NotFound));
    assert_eq!(delete().await, absent);
}

#[tokio::test(start_paused = true)]
async fn data_written_meanwhile_is_deleted_too() {
    let (_, deletion) = deletion(vec![Ok(2), Ok(1), Ok(0)]).await;
    let deleted = deletion.delete("ann", &Operator::default()).await.unwrap();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].count, 3);
}

#[tokio::test(start_paused = true)]
async fn endless_data_is_reported() {
    let (stores, deletion) = deletion(vec![Ok(1)]).await;
    let refused = deletion.delete("ann", &Operator::default()).await;
    assert!(matches!(refused, Err(DeletionError::Incomplete(_))));
    assert!(stores.accounts.find("ann").await.unwrap().is_some());
}
