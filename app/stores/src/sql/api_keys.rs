//! API key store over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{NewAuditEntry, Role};
use deerflow_domain::api_keys::{ApiKey, ApiKeyStore, KeyCreation, KeyHash};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::accounts::{append, owner_is_enabled};
use crate::db::connect::Database;
use crate::db::entity::{account, api_key, micros, moment, plain};
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
    async fn create(
        &self,
        key: ApiKey,
        hash: KeyHash,
        entry: NewAuditEntry,
    ) -> Result<(), StoreError> {
        self.writes.create((row(key, hash), entry), create).await
    }

    async fn create_own(
        &self,
        key: ApiKey,
        hash: KeyHash,
        maximum: u64,
        entry: NewAuditEntry,
    ) -> Result<KeyCreation, StoreError> {
        let work = OwnKey {
            row: row(key, hash),
            maximum,
            entry,
        };
        self.writes.create(work, create_own).await
    }

    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError> {
        let row = api_key::Entity::find_by_id(plain(key_id))
            .filter(owner_is_enabled("api_keys.user_id"))
            .one(&self.reads)
            .await;
        let Some((mut key, hash)) = read(row)?.map(record) else {
            return Ok(None);
        };
        if key.is_admin {
            let owner = account::Entity::find_by_id(key.user_id.as_str())
                .one(&self.reads)
                .await;
            let owner = read(owner)?;
            key.is_admin = owner.is_none_or(|owner| owner.role == Role::Admin.as_str());
        }
        Ok(Some((key, hash)))
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

    async fn revoke(&self, key_id: &str, entry: NewAuditEntry) -> Result<bool, StoreError> {
        self.writes.release((plain(key_id), entry), revoke).await
    }

    async fn revoke_own(
        &self,
        user: &str,
        key_id: &str,
        entry: NewAuditEntry,
    ) -> Result<bool, StoreError> {
        let work = (plain(user), plain(key_id), entry);
        self.writes.release(work, revoke_own).await
    }

    async fn revoke_all(&self, user: &str, at: DateTime<Utc>) -> Result<u64, StoreError> {
        self.writes
            .release((plain(user), micros(at)), revoke_all)
            .await
    }
}

/// Key that a user makes.
struct OwnKey {
    row: api_key::Model,
    maximum: u64,
    entry: NewAuditEntry,
}

fn create_own<'a>(
    tx: &'a DatabaseTransaction,
    OwnKey {
        row,
        maximum,
        entry,
    }: &'a OwnKey,
) -> TxFuture<'a, KeyCreation> {
    Box::pin(async move {
        // The lock serializes the creations of a user, and excludes the end of the account.
        let owner = account::Entity::find_by_id(row.user_id.as_str())
            .filter(account::Column::DisabledAt.is_null())
            .lock_exclusive()
            .one(tx)
            .await?;
        if owner.is_none() {
            return Ok(KeyCreation::NoAccount);
        }
        let is_unexpired = Condition::any()
            .add(api_key::Column::ExpiresAt.is_null())
            .add(api_key::Column::ExpiresAt.gt(row.created_at));
        let live = api_key::Entity::find()
            .filter(api_key::Column::UserId.eq(row.user_id.as_str()))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(is_unexpired);
        if live.count(tx).await? >= *maximum {
            return Ok(KeyCreation::TooMany);
        }
        api_key::Entity::insert(row.clone().into_active_model())
            .exec_without_returning(tx)
            .await?;
        append(tx, entry).await?;
        Ok(KeyCreation::Created)
    })
}

/// Revokes the selected keys that are not revoked; returns their number.
async fn revoke_where(
    tx: &DatabaseTransaction,
    selection: Condition,
    at: i64,
) -> Result<u64, DbErr> {
    let revoked = api_key::Entity::update_many()
        .col_expr(api_key::Column::RevokedAt, Expr::value(at))
        .filter(selection)
        .filter(api_key::Column::RevokedAt.is_null())
        .exec(tx)
        .await?;
    Ok(revoked.rows_affected)
}

fn revoke_own<'a>(
    tx: &'a DatabaseTransaction,
    (user, key_id, entry): &'a (String, String, NewAuditEntry),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let selection = Condition::all()
            .add(api_key::Column::UserId.eq(user))
            .add(api_key::Column::KeyId.eq(key_id));
        let revoked = revoke_where(tx, selection, micros(entry.at)).await? == 1;
        if revoked {
            append(tx, entry).await?;
        }
        Ok(revoked)
    })
}

fn revoke_all<'a>(tx: &'a DatabaseTransaction, (user, at): &'a (String, i64)) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let selection = Condition::all().add(api_key::Column::UserId.eq(user));
        Ok(revoke_where(tx, selection, *at).await?)
    })
}

fn create<'a>(
    tx: &'a DatabaseTransaction,
    (row, entry): &'a (api_key::Model, NewAuditEntry),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        api_key::Entity::insert(row.clone().into_active_model())
            .exec_without_returning(tx)
            .await?;
        Ok(append(tx, entry).await?)
    })
}

fn revoke<'a>(
    tx: &'a DatabaseTransaction,
    (key_id, entry): &'a (String, NewAuditEntry),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let selection = Condition::all().add(api_key::Column::KeyId.eq(key_id));
        revoke_where(tx, selection, micros(entry.at)).await?;
        let exists = api_key::Entity::find_by_id(key_id).count(tx).await? > 0;
        if exists {
            append(tx, entry).await?;
        }
        Ok(exists)
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
