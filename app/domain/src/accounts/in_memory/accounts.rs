//! Accounts in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::{AccountTables, InMemoryAccounts};
use crate::accounts::account::{Account, PasswordHash, ProviderIdentity, Role};
use crate::accounts::account_store::{
    AccountCensus, AccountPage, AccountQuery, AccountStore, Admission, ImportOutcome, NewAccount,
    new_account_id,
};
use crate::accounts::audit::NewAuditEntry;
use crate::accounts::change::{AccountChange, SessionsAfter, check_administrators};
use crate::accounts::email::Email;
use crate::accounts::error::AccountError;

impl AccountTables {
    fn administrators(&self) -> u64 {
        let admins = self.accounts.values();
        admins.filter(|account| account.role == Role::Admin).count() as u64
    }

    /// Checks that no account with another id has the e-mail or identity.
    fn check_unique(&self, account: &Account) -> Result<(), AccountError> {
        let others = || {
            self.accounts
                .values()
                .filter(|other| other.id != account.id)
        };
        if others().any(|other| other.email == account.email) {
            return Err(AccountError::EmailTaken);
        }
        if account.identity.is_some() && others().any(|other| other.identity == account.identity) {
            return Err(AccountError::IdentityTaken);
        }
        Ok(())
    }

    fn check_administrators(
        &self,
        before: &Account,
        after: Option<&Account>,
    ) -> Result<(), AccountError> {
        let enabled_others = self
            .accounts
            .values()
            .filter(|account| account.id != before.id && account.is_enabled_admin())
            .count() as u64;
        check_administrators(before, after, enabled_others, self.administrators())
    }

    fn account(&self, id: &str) -> Result<Account, AccountError> {
        self.accounts.get(id).cloned().ok_or(AccountError::NotFound)
    }
}

#[async_trait]
impl AccountStore for InMemoryAccounts {
    async fn create(&self, new: NewAccount, entry: NewAuditEntry) -> Result<Account, AccountError> {
        let mut tables = self.0.lock();
        let administrators = tables.administrators();
        if new.admission == Admission::NoAdministrator && administrators > 0 {
            return Err(AccountError::AdministratorExists);
        }
        let id = new_account_id(new.role, administrators, &new.id);
        let account = new.into_account(id);
        tables.check_unique(&account)?;
        let id = account.id.clone();
        tables.deleted.remove(&id);
        tables.accounts.insert(id.clone(), account.clone());
        tables.append(NewAuditEntry {
            object: entry.object.or(Some(id)),
            ..entry
        });
        Ok(account)
    }

    async fn import(
        &self,
        accounts: Vec<Account>,
        entry: NewAuditEntry,
    ) -> Result<ImportOutcome, AccountError> {
        let mut tables = self.0.lock();
        let mut outcome = ImportOutcome::default();
        for account in accounts {
            let id = account.id.clone();
            if tables.accounts.contains_key(&id) || tables.check_unique(&account).is_err() {
                outcome.skipped.push(id);
                continue;
            }
            tables.deleted.remove(&id);
            tables.accounts.insert(id.clone(), account);
            tables.append(entry.clone().on(id.clone()));
            outcome.imported.push(id);
        }
        Ok(outcome)
    }

    async fn find(&self, id: &str) -> Result<Option<Account>, StoreError> {
        Ok(self.0.lock().accounts.get(id).cloned())
    }

    async fn find_by_email(&self, email: &Email) -> Result<Option<Account>, StoreError> {
        let tables = self.0.lock();
        let found = tables
            .accounts
            .values()
            .find(|account| account.email == *email);
        Ok(found.cloned())
    }

    async fn find_by_identity(
        &self,
        identity: &ProviderIdentity,
    ) -> Result<Option<Account>, StoreError> {
        let tables = self.0.lock();
        let found = tables
            .accounts
            .values()
            .find(|account| account.identity.as_ref() == Some(identity));
        Ok(found.cloned())
    }

    async fn list(&self, query: &AccountQuery) -> Result<AccountPage, StoreError> {
        let q = query.q.as_deref().unwrap_or_default().to_lowercase();
        let tables = self.0.lock();
        let mut found: Vec<&Account> = tables
            .accounts
            .values()
            .filter(|account| account.email.as_str().contains(&q) || account.id.to_lowercase() == q)
            .filter(|account| query.role.is_none_or(|role| account.role == role))
            .collect();
        found.sort_by_key(|account| (account.created_at, &account.id));
        Ok(AccountPage {
            total: found.len() as u64,
            accounts: found
                .into_iter()
                .skip(usize::try_from(query.offset).unwrap_or(usize::MAX))
                .take(usize::try_from(query.limit).unwrap_or(usize::MAX))
                .cloned()
                .collect(),
        })
    }

    async fn census(&self) -> Result<AccountCensus, StoreError> {
        let tables = self.0.lock();
        Ok(AccountCensus {
            accounts: tables.accounts.len() as u64,
            administrators: tables.administrators(),
        })
    }

    async fn change(
        &self,
        id: &str,
        change: AccountChange,
        sessions: SessionsAfter,
        entries: Vec<NewAuditEntry>,
        at: DateTime<Utc>,
    ) -> Result<Account, AccountError> {
        let mut tables = self.0.lock();
        let before = tables.account(id)?;
        let after = change.apply(&before, at)?;
        tables.check_unique(&after)?;
        tables.check_administrators(&before, Some(&after))?;
        tables.accounts.insert(id.to_owned(), after.clone());
        if change.drops_credentials {
            tables.keys_revoked.insert(id.to_owned(), at);
        }
        match sessions {
            SessionsAfter::Unchanged => {}
            SessionsAfter::EndAll => tables.sessions.retain(|_, session| session.user_id != id),
            SessionsAfter::EndAllBut(but) => tables
                .sessions
                .retain(|session_id, session| session.user_id != id || *session_id == but),
            SessionsAfter::Replace(session) => {
                tables.sessions.retain(|_, old| old.user_id != id);
                tables.sessions.insert(session.id, *session);
            }
        }
        for entry in entries {
            tables.append(entry);
        }
        Ok(after)
    }

    async fn rehash(
        &self,
        id: &str,
        old: &PasswordHash,
        new: PasswordHash,
    ) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let account = tables
            .accounts
            .get_mut(id)
            .filter(|account| account.password_hash.as_ref() == Some(old));
        Ok(account
            .map(|account| account.password_hash = Some(new))
            .is_some())
    }

    async fn delete(&self, id: &str, entry: NewAuditEntry) -> Result<(), AccountError> {
        let mut tables = self.0.lock();
        let before = tables.account(id)?;
        tables.check_administrators(&before, None)?;
        tables.accounts.remove(id);
        tables.deleted.insert(id.to_owned());
        tables.sessions.retain(|_, session| session.user_id != id);
        tables.append(entry);
        Ok(())
    }
}
