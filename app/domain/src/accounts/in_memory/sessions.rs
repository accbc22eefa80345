//! Sessions in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use uuid::Uuid;

use super::InMemoryAccounts;
use crate::accounts::account::Account;
use crate::accounts::audit::NewAuditEntry;
use crate::accounts::error::AccountError;
use crate::accounts::session::{Session, TokenHash};
use crate::accounts::session_store::{NewSession, SessionStore};

#[async_trait]
impl SessionStore for InMemoryAccounts {
    async fn start(&self, new: NewSession, entry: NewAuditEntry) -> Result<Account, AccountError> {
        let mut tables = self.0.lock();
        let account = tables
            .accounts
            .get_mut(&new.session.user_id)
            .ok_or(AccountError::NotFound)?;
        if !account.is_enabled() {
            return Err(AccountError::Disabled);
        }
        if new.if_password.is_some() && new.if_password != account.password_hash {
            return Err(AccountError::PasswordChanged);
        }
        account.last_login_at = Some(new.session.created_at);
        let account = account.clone();
        tables.sessions.insert(new.session.id, new.session);
        tables.append(entry);
        Ok(account)
    }

    async fn find(&self, hash: &TokenHash) -> Result<Option<(Session, Account)>, StoreError> {
        let tables = self.0.lock();
        let session = tables
            .sessions
            .values()
            .find(|session| session.token_hash == *hash);
        Ok(session.and_then(|session| {
            let account = tables.accounts.get(&session.user_id)?;
            Some((session.clone(), account.clone()))
        }))
    }

    async fn extend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let session = tables.sessions.get_mut(&id);
        Ok(session
            .map(|session| session.last_used_at = session.last_used_at.max(at))
            .is_some())
    }

    async fn end(&self, user: &str, id: Uuid, entry: NewAuditEntry) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let owned = tables
            .sessions
            .get(&id)
            .is_some_and(|session| session.user_id == user);
        if owned {
            tables.sessions.remove(&id);
            tables.append(entry);
        }
        Ok(owned)
    }

    async fn end_all(
        &self,
        user: &str,
        but: Option<Uuid>,
        entry: NewAuditEntry,
    ) -> Result<u64, StoreError> {
        let mut tables = self.0.lock();
        let before = tables.sessions.len();
        tables
            .sessions
            .retain(|id, session| session.user_id != user || Some(*id) == but);
        let ended = before - tables.sessions.len();
        if ended > 0 {
            tables.append(entry);
        }
        Ok(ended as u64)
    }

    async fn list(&self, user: &str, at: DateTime<Utc>) -> Result<Vec<Session>, StoreError> {
        let tables = self.0.lock();
        let mut found: Vec<Session> = tables
            .sessions
            .values()
            .filter(|session| session.user_id == user && session.is_valid(at))
            .cloned()
            .collect();
        found.sort_by_key(|session| std::cmp::Reverse((session.created_at, session.id)));
        Ok(found)
    }

    async fn purge(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut tables = self.0.lock();
        let before = tables.sessions.len();
        tables.sessions.retain(|_, session| session.is_valid(at));
        Ok((before - tables.sessions.len()) as u64)
    }
}
