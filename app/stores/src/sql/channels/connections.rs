//! Connections of users over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    ChannelStoreError, Connection, ConnectionStore, ConsumedCode, ExternalIdentity, NewCode,
    PendingCode,
};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder, UpdateMany};
use uuid::Uuid;

use super::SqlChannelStore;
use super::codes::{SentCode, consume, create};
use super::connection_row::{readable, record};
use crate::db::entity::{account, channel_connection, micros, plain};
use crate::db::error::read;
use crate::db::tx::TxFuture;

#[async_trait]
impl ConnectionStore for SqlChannelStore {
    async fn create_code(
        &self,
        code: NewCode,
        at: DateTime<Utc>,
    ) -> Result<PendingCode, ChannelStoreError> {
        self.db.writes().create((code, micros(at)), create).await
    }

    async fn consume_code(
        &self,
        hash: &str,
        identity: &ExternalIdentity,
        names: (Option<String>, Option<String>),
        at: DateTime<Utc>,
    ) -> Result<ConsumedCode, ChannelStoreError> {
        let sent = SentCode {
            hash: hash.to_owned(),
            identity: identity.clone(),
            names,
            at: micros(at),
        };
        self.db.writes().create(sent, consume).await
    }

    async fn list(&self, user: &str) -> Result<Vec<Connection>, ChannelStoreError> {
        let rows = channel_connection::Entity::find()
            .filter(channel_connection::Column::UserId.eq(plain(user)))
            .order_by_desc(channel_connection::Column::CreatedAt)
            .order_by_desc(channel_connection::Column::ConnectionId)
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn find_active(
        &self,
        identity: &ExternalIdentity,
    ) -> Result<Option<Connection>, ChannelStoreError> {
        let row = channel_connection::Entity::find()
            .filter(channel_connection::Column::Provider.eq(plain(&identity.provider)))
            .filter(channel_connection::Column::Account.eq(plain(&identity.account)))
            .filter(channel_connection::Column::Workspace.eq(plain(&identity.workspace)))
            .filter(channel_connection::is_active())
            .one(self.db.reads())
            .await;
        Ok(read(read(row)?.map(record).transpose())?)
    }

    async fn is_suspended(&self, user: &str) -> Result<bool, ChannelStoreError> {
        let row = account::Entity::find_by_id(plain(user))
            .filter(account::Column::DisabledAt.is_not_null())
            .one(self.db.reads())
            .await;
        Ok(read(row)?.is_some())
    }

    async fn disconnect(
        &self,
        user: &str,
        id: Uuid,
        at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError> {
        let work = (plain(user), id.to_string(), micros(at));
        self.db.writes().release(work, disconnect).await
    }

    async fn disconnect_all(
        &self,
        provider: &str,
        at: DateTime<Utc>,
    ) -> Result<u64, ChannelStoreError> {
        let work = (plain(provider), micros(at));
        self.db.writes().release(work, disconnect_all).await
    }
}

/// Builds the update that deactivates the active connections at a time.
fn deactivation(at: i64) -> UpdateMany<channel_connection::Entity> {
    channel_connection::Entity::update_many()
        .col_expr(channel_connection::Column::Active, Expr::value(false))
        .col_expr(channel_connection::Column::UpdatedAt, Expr::value(at))
        .filter(channel_connection::is_active())
}

fn disconnect_all<'a>(
    tx: &'a DatabaseTransaction,
    (provider, at): &'a (String, i64),
) -> TxFuture<'a, u64, ChannelStoreError> {
    Box::pin(async move {
        let of_platform = channel_connection::Column::Provider.eq(provider);
        let updated = deactivation(*at).filter(of_platform).exec(tx).await?;
        Ok(updated.rows_affected)
    })
}

fn disconnect<'a>(
    tx: &'a DatabaseTransaction,
    (user, id, at): &'a (String, String, i64),
) -> TxFuture<'a, bool, ChannelStoreError> {
    Box::pin(async move {
        let updated = deactivation(*at)
            .filter(channel_connection::Column::ConnectionId.eq(id))
            .filter(channel_connection::Column::UserId.eq(user))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected == 1)
    })
}
