//! Account stores in memory, for one process and for tests.

mod accounts;
mod audit;
mod limits;
mod sessions;
mod used_states;

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
use super::session::{Session, TokenHash};

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
            used_states: self.clone(),
            audit: self,
        }
    }

    /// Reports whether a key of a user is invalid: the account is disabled or was deleted, or lost
    /// its credentials after the creation of the key.
    pub(crate) fn refuses_key(&self, user: &str, created_at: DateTime<Utc>) -> bool {
        let tables = self.0.lock();
        let is_disabled = |account: &Account| !account.is_enabled();
        tables.deleted.contains(user)
            || tables.accounts.get(user).is_some_and(is_disabled)
            || tables
                .keys_revoked
                .get(user)
                .is_some_and(|at| created_at <= *at)
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
    /// Used states, and the times until which they are remembered.
    used_states: HashMap<TokenHash, DateTime<Utc>>,
    /// Time before which the API keys of an account were revoked.
    keys_revoked: HashMap<String, DateTime<Utc>>,
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
