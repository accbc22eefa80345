//! Writes, deletes and refreshes items.

use deerflow_core::quota::Quota;
use deerflow_domain::items::NewItem;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, Statement, Value};

use super::vector::vector_value;
use crate::db::entity::micros;
use crate::db::json::json_text;
use crate::db::quotas::QuotaCheck;
use crate::db::tx::TxFuture;

/// An expired item that is written again counts as new.
const PUT: &str = "\
    INSERT INTO store_items (user_id, namespace, item_key, value_json, ttl_micros, expires_at, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7) \
    ON CONFLICT (user_id, namespace, item_key) DO UPDATE SET \
        created_at = CASE WHEN store_items.expires_at <= excluded.updated_at THEN excluded.created_at ELSE store_items.created_at END, \
        value_json = excluded.value_json, ttl_micros = excluded.ttl_micros, expires_at = excluded.expires_at, \
        updated_at = excluded.updated_at \
    RETURNING CASE WHEN created_at = updated_at THEN 1 ELSE 0 END";
const DELETE_VECTORS: &str =
    "DELETE FROM store_vectors WHERE user_id = $1 AND namespace = $2 AND item_key = $3";
const DELETE: &str =
    "DELETE FROM store_items WHERE user_id = $1 AND namespace = $2 AND item_key = $3";
const REFRESH: &str = "\
    UPDATE store_items SET expires_at = $4 + ttl_micros \
    WHERE user_id = $1 AND namespace = $2 AND item_key = $3 AND ttl_micros IS NOT NULL";
const SWEEP: &str = "DELETE FROM store_items WHERE expires_at <= $1";

async fn execute(tx: &DatabaseTransaction, sql: &str, values: Vec<Value>) -> Result<u64, DbErr> {
    Ok(tx
        .execute_raw(Statement::from_sql_and_values(
            tx.get_database_backend(),
            sql,
            values,
        ))
        .await?
        .rows_affected())
}

/// Reports whether the item is new.
async fn insert_or_replace(tx: &DatabaseTransaction, values: Vec<Value>) -> Result<bool, DbErr> {
    let put = Statement::from_sql_and_values(tx.get_database_backend(), PUT, values);
    match tx.query_one_raw(put).await? {
        Some(row) => Ok(row.try_get_by_index::<i32>(0)? == 1),
        None => Ok(false),
    }
}

pub(super) fn put<'a>(
    tx: &'a DatabaseTransaction,
    (item, check): &'a (NewItem, QuotaCheck),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let item_key: [Value; 3] = [
            item.user_id.as_str().into(),
            item.namespace.to_text().into(),
            item.key.as_str().into(),
        ];
        let at = micros(item.at);
        let ttl = item
            .ttl
            .map(|ttl| ttl.num_microseconds().unwrap_or(i64::MAX));
        let mut values = item_key.to_vec();
        values.extend([
            json_text(&item.value).into(),
            ttl.into(),
            ttl.map(|ttl| at.saturating_add(ttl)).into(),
            at.into(),
        ]);
        if insert_or_replace(tx, values).await? {
            check.inserted(tx, Quota::Items).await?;
        }
        execute(tx, DELETE_VECTORS, item_key.to_vec()).await?;
        for (part, vector) in item.vectors.iter().enumerate() {
            let (kind, vector) = vector_value(tx.get_database_backend(), vector);
            let sql = format!(
                "INSERT INTO store_vectors (user_id, namespace, item_key, part, vector) VALUES ($1, $2, $3, $4, {kind})"
            );
            let sql = sql.replace("{}", "$5");
            let mut values = item_key.to_vec();
            values.extend([i64::try_from(part).unwrap_or(i64::MAX).into(), vector]);
            execute(tx, &sql, values).await?;
        }
        Ok(())
    })
}

pub(super) fn delete<'a>(
    tx: &'a DatabaseTransaction,
    item_key: &'a [String; 3],
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        Ok(execute(
            tx,
            DELETE,
            item_key.iter().map(|part| part.as_str().into()).collect(),
        )
        .await
        .map(drop)?)
    })
}

pub(super) fn refresh<'a>(
    tx: &'a DatabaseTransaction,
    (user, places, at): &'a (String, Vec<(String, String)>, i64),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        for (namespace, key) in places {
            let values = vec![
                user.as_str().into(),
                namespace.as_str().into(),
                key.as_str().into(),
                (*at).into(),
            ];
            execute(tx, REFRESH, values).await?;
        }
        Ok(())
    })
}

pub(super) fn sweep<'a>(tx: &'a DatabaseTransaction, at: &'a i64) -> TxFuture<'a, u64> {
    Box::pin(async move { Ok(execute(tx, SWEEP, vec![(*at).into()]).await?) })
}
