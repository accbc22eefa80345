//! Sessions over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{
    Account, AccountError, AccountStore, NewAuditEntry, NewSession, Session, SessionStore,
    TokenHash,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::SqlAccountStore;
use super::session_row::record;
use super::session_writes::{End, EndAll, Start, end, end_all, extend, purge, start};
use crate::db::entity::{micros, plain, session};
use crate::db::error::read;

#[async_trait]
impl SessionStore for SqlAccountStore {
    async fn start(&self, new: NewSession, entry: NewAuditEntry) -> Result<Account, AccountError> {
        self.db.writes().create(Start { new, entry }, start).await?
    }

    async fn find(&self, hash: &TokenHash) -> Result<Option<(Session, Account)>, StoreError> {
        let row = session::Entity::find()
            .filter(session::Column::TokenHash.eq(plain(hash.as_str())))
            .one(self.db.reads())
            .await;
        let Some(session) = read(read(row)?.map(record).transpose())? else {
            return Ok(None);
        };
        let account = AccountStore::find(self, &session.user_id).await?;
        Ok(account.map(|account| (session, account)))
    }

    async fn extend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, StoreError> {
        self.db.writes().run((id, at), extend).await
    }

    async fn end(&self, user: &str, id: Uuid, entry: NewAuditEntry) -> Result<bool, StoreError> {
        let user = plain(user);
        self.db.writes().release(End { user, id, entry }, end).await
    }

    async fn end_all(
        &self,
        user: &str,
        but: Option<Uuid>,
        entry: NewAuditEntry,
    ) -> Result<u64, StoreError> {
        let user = plain(user);
        let work = EndAll { user, but, entry };
        self.db.writes().release(work, end_all).await
    }

    async fn list(&self, user: &str, at: DateTime<Utc>) -> Result<Vec<Session>, StoreError> {
        let rows = session::Entity::find()
            .filter(session::Column::UserId.eq(plain(user)))
            .filter(session::Column::EndsAt.gt(micros(at)))
            .order_by_desc(session::Column::CreatedAt)
            .order_by_desc(session::Column::SessionId)
            .all(self.db.reads())
            .await;
        read(read(rows)?.into_iter().map(record).collect())
    }

    async fn purge(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        self.db.writes().release(micros(at), purge).await
    }
}
