//! Account stores in memory, for one process and for tests.

mod accounts;
mod audit;
mod limits;
mod sessions;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

use super::AccountStores;
use super::account::Account;
use super::address::AddressKey;
use super::audit::{AuditEntry, NewAuditEntry};
use super::login_limits::AttemptKey;
use super::session::Session;

/// All account stores of one process, in memory.
#[derive(Debug, Default)]
pub struct InMemoryAccounts(Mutex<AccountTables>);

impl InMemoryAccounts {
    /// Returns this store as all account ports.
    pub fn stores(self: Arc<Self>) -> AccountStores {
        AccountStores {
            accounts: self.clone(),
            sessions: self.clone(),
            limits: self.clone(),
            audit: self,
        }
    }

    /// Reports whether keys of a user are invalid: the account is disabled or was deleted.
    pub(crate) fn refuses_keys_of(&self, user: &str) -> bool {
        let tables = self.0.lock();
        tables.deleted.contains(user)
            || tables
                .accounts
                .get(user)
                .is_some_and(|account| !account.is_enabled())
    }
}

#[derive(Debug, Default)]
struct AccountTables {
    accounts: BTreeMap<String, Account>,
    /// Ids of deleted accounts.
    deleted: HashSet<String>,
    sessions: HashMap<Uuid, Session>,
    attempts: HashMap<Uuid, Attempt>,
    /// Time of the last sign-in of an account from an address.
    known: HashMap<(String, AddressKey), DateTime<Utc>>,
    registrations: Vec<(AddressKey, DateTime<Utc>)>,
    audit: Vec<AuditEntry>,
}

/// Recorded attempt.
#[derive(Debug)]
struct Attempt {
    key: AttemptKey,
    at: DateTime<Utc>,
    failed: bool,
}

impl AccountTables {
    fn append(&mut self, entry: NewAuditEntry) {
        let seq = self.audit.last().map_or(0, |last| last.seq) + 1;
        self.audit.push(AuditEntry { seq, entry });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::InMemoryAccounts;
    use crate::api_keys::InMemoryApiKeyStore;
    use crate::testkit::accounts::AccountSuite;

    async fn memory() -> AccountSuite {
        let accounts = Arc::new(InMemoryAccounts::default());
        AccountSuite {
            keys: Arc::new(InMemoryApiKeyStore::with_accounts(accounts.clone())),
            other_node: accounts.clone().stores(),
            stores: accounts.stores(),
            keep: Arc::new(()),
        }
    }

    crate::account_store_suite!([#[tokio::test]] memory);
}
