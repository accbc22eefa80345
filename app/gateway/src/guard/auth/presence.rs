//! Whether the installation has accounts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deerflow_domain::accounts::AccountStore;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time for which the absence of accounts is remembered. An account that another node creates
/// closes this node after this time and the time of one read, and at once for its own session.
const ABSENCE_AGE: Duration = Duration::from_millis(500);

/// Knowledge of whether the installation has accounts. Their existence is remembered until the
/// process ends: an installation does not open again.
#[derive(Debug)]
pub struct AccountPresence {
    accounts: Arc<dyn AccountStore>,
    exist: AtomicBool,
    absent_since: Mutex<Option<Instant>>,
}

impl AccountPresence {
    /// Reads from `accounts`.
    pub fn new(accounts: Arc<dyn AccountStore>) -> Self {
        Self {
            accounts,
            exist: AtomicBool::new(false),
            absent_since: Mutex::new(None),
        }
    }

    /// Returns whether there is an account, or was one [`ABSENCE_AGE`] ago.
    pub(crate) async fn any(&self) -> Result<bool, StoreError> {
        if self.exist.load(Ordering::Acquire) {
            return Ok(true);
        }
        // The time before the read, so that the result is not younger than an account.
        let now = Instant::now();
        if self
            .absent_since
            .lock()
            .is_some_and(|since| now - since < ABSENCE_AGE)
        {
            return Ok(self.exist.load(Ordering::Acquire));
        }
        self.read(now).await
    }

    /// Returns whether there is an account now.
    pub(crate) async fn any_now(&self) -> Result<bool, StoreError> {
        if self.exist.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.read(Instant::now()).await
    }

    async fn read(&self, now: Instant) -> Result<bool, StoreError> {
        if self.accounts.census().await?.accounts > 0 {
            self.created();
        } else {
            *self.absent_since.lock() = Some(now);
        }
        Ok(self.exist.load(Ordering::Acquire))
    }

    /// Records that this node created an account.
    pub(crate) fn created(&self) {
        self.exist.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use deerflow_domain::accounts::{
        Admission, AuditAction, Email, InMemoryAccounts, NewAccount, NewAuditEntry, Role,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn account_of_another_node_is_seen_within_a_second() {
        let stores = Arc::new(InMemoryAccounts::default()).stores();
        let presence = AccountPresence::new(stores.accounts.clone());
        assert_eq!(presence.any().await, Ok(false));
        let at = chrono::DateTime::UNIX_EPOCH;
        let account = NewAccount {
            id: "ann".to_owned(),
            email: Email::parse("ann@example.org").unwrap(),
            role: Role::User,
            password_hash: None,
            identity: None,
            needs_setup: false,
            admission: Admission::Always,
            at,
        };
        let entry = NewAuditEntry::new(AuditAction::AccountCreated, at);
        stores.accounts.create(account, entry).await.unwrap();
        assert_eq!(presence.any().await, Ok(false));
        tokio::time::advance(ABSENCE_AGE).await;
        assert_eq!(presence.any().await, Ok(true));
    }

    #[tokio::test(start_paused = true)]
    async fn account_of_this_node_is_seen_at_once() {
        let stores = Arc::new(InMemoryAccounts::default()).stores();
        let presence = AccountPresence::new(stores.accounts);
        assert_eq!(presence.any().await, Ok(false));
        presence.created();
        assert_eq!(presence.any().await, Ok(true));
    }
}
