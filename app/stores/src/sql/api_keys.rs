//! API key store over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::api_keys::{ApiKey, ApiKeyStore, KeyHash};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, DatabaseConnection, DatabaseTransaction, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder,
};

use crate::db::connect::Database;
use crate::db::entity::{api_key, micros, moment, plain};
use crate::db::error::read;
use crate::db::tx::TxFuture;
use crate::db::writes::Writes;

/// API key store over SQL.
#[derive(Debug, Clone)]
pub struct SqlApiKeyStore {
    reads: DatabaseConnection,
    writes: Writes,
}

impl SqlApiKeyStore {
    /// Creates a store over `db`.
    pub fn new(db: &Database) -> Self {
        Self {
            reads: db.reads().clone(),
            writes: db.writes().clone(),
        }
    }
}

#[async_trait]
impl ApiKeyStore for SqlApiKeyStore {
    async fn create(&self, key: ApiKey, hash: KeyHash) -> Result<(), StoreError> {
        self.writes.create(row(key, hash), create).await
    }

    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError> {
        Ok(read(
            api_key::Entity::find_by_id(plain(key_id))
                .one(&self.reads)
                .await,
        )?
        .map(record))
    }

    async fn list(&self, user: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
        let mut select = api_key::Entity::find();
        if let Some(user) = user {
            select = select.filter(api_key::Column::UserId.eq(plain(user)));
        }
        let rows = select
            .order_by_asc(api_key::Column::CreatedAt)
            .order_by_asc(api_key::Column::KeyId)
            .all(&self.reads)
            .await;
        Ok(read(rows)?.into_iter().map(|row| record(row).0).collect())
    }

    async fn revoke(&self, key_id: &str, at: DateTime<Utc>) -> Result<bool, StoreError> {
        self.writes
            .release((plain(key_id), micros(at)), revoke)
            .await
    }
}

fn create<'a>(tx: &'a DatabaseTransaction, row: &'a api_key::Model) -> TxFuture<'a, ()> {
    Box::pin(async move {
        Ok(api_key::Entity::insert(row.clone().into_active_model())
            .exec_without_returning(tx)
            .await
            .map(drop)?)
    })
}

fn revoke<'a>(tx: &'a DatabaseTransaction, (key_id, at): &'a (String, i64)) -> TxFuture<'a, bool> {
    Box::pin(async move {
        api_key::Entity::update_many()
            .col_expr(api_key::Column::RevokedAt, Expr::value(*at))
            .filter(api_key::Column::KeyId.eq(key_id))
            .filter(api_key::Column::RevokedAt.is_null())
            .exec(tx)
            .await?;
        Ok(api_key::Entity::find_by_id(key_id).count(tx).await? > 0)
    })
}

fn row(key: ApiKey, KeyHash(hash): KeyHash) -> api_key::Model {
    api_key::Model {
        key_id: plain(&key.key_id),
        user_id: plain(&key.user_id),
        name: key.name.as_deref().map(plain),
        is_admin: key.is_admin,
        hash,
        created_at: micros(key.created_at),
        expires_at: key.expires_at.map(micros),
        revoked_at: key.revoked_at.map(micros),
    }
}

fn record(row: api_key::Model) -> (ApiKey, KeyHash) {
    let key = ApiKey {
        key_id: row.key_id,
        user_id: row.user_id,
        name: row.name,
        is_admin: row.is_admin,
        created_at: moment(row.created_at),
        expires_at: row.expires_at.map(moment),
        revoked_at: row.revoked_at.map(moment),
    };
    (key, KeyHash(row.hash))
}
