//! Changes of flows within a transaction.

use chrono::{DateTime, Utc};
use deerflow_domain::flows::{
    DeletedFlow, Expected, FlowContent, FlowQuota, FlowRecord, FlowWrite, SaveError,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, Statement, Value,
};

use super::row::record;
use crate::db::entity::{flow, flow_content, flow_version, micros};
use crate::db::error::{DbFailure, FromDbFailure};
use crate::db::json::json_text;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxError;

impl FromDbFailure for SaveError {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Store(failure.into())
    }
}

/// Writes of one user.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) user: String,
    pub(super) writes: Vec<PreparedWrite>,
    pub(super) quota: FlowQuota,
    pub(super) at: DateTime<Utc>,
}

/// A write in its stored form, so that the writer neither hashes nor serializes.
#[derive(Debug)]
pub(super) struct PreparedWrite {
    slug: String,
    expected: Expected,
    content_hash: String,
    content_json: String,
    summary_json: String,
}

impl PreparedWrite {
    /// Prepares a write.
    pub(super) fn of(write: FlowWrite) -> Self {
        Self {
            content_hash: write.content.hash(),
            content_json: json_text(&write.content),
            summary_json: json_text(&write.summary),
            slug: write.slug,
            expected: write.expected,
        }
    }
}

/// Builds the row of a content.
pub(super) fn content_row(
    user_id: String,
    content: &FlowContent,
    unused_since: Option<i64>,
) -> flow_content::Model {
    flow_content::Model {
        user_id,
        content_hash: content.hash(),
        content_json: json_text(content),
        unused_since,
    }
}

/// Stores all writes, or none.
pub(super) async fn save(
    tx: &DatabaseTransaction,
    batch: &Batch,
) -> Result<Vec<FlowRecord>, TxError<SaveError>> {
    lock_owner(tx, &batch.user).await?;
    let of_user = flow::Entity::find().filter(flow::Column::UserId.eq(batch.user.as_str()));
    let mut count = of_user.count(tx).await?;
    let mut saved = Vec::with_capacity(batch.writes.len());
    for write in &batch.writes {
        let current = flow::Entity::find_by_id((batch.user.clone(), write.slug.clone()))
            .one(tx)
            .await?;
        check(write, current.as_ref(), count, batch.quota).map_err(TxError::Refused)?;
        count += u64::from(current.is_none());
        let row = match current {
            Some(current) if current.content_hash == write.content_hash => current,
            current => add_version(tx, batch, write, current).await?,
        };
        saved.push(record(row)?);
    }
    Ok(saved)
}

/// Serializes the changes of one user's flows: quotas count rows, which no row lock protects.
/// SQLite has a single writer anyway.
async fn lock_owner(tx: &DatabaseTransaction, user: &str) -> Result<(), DbErr> {
    const LOCK: &str = "INSERT INTO flow_owners (user_id) VALUES ($1) \
        ON CONFLICT (user_id) DO UPDATE SET user_id = excluded.user_id";
    execute(tx, LOCK, [user.into()]).await?;
    Ok(())
}

/// Decides whether a write may be stored.
fn check(
    write: &PreparedWrite,
    current: Option<&flow::Model>,
    count: u64,
    quota: FlowQuota,
) -> Result<(), SaveError> {
    let slug = || write.slug.clone();
    match (&write.expected, current) {
        (Expected::Absent, Some(_)) => Err(SaveError::Taken(slug())),
        (Expected::Present | Expected::Hash(_), None) => Err(SaveError::NotFound(slug())),
        (Expected::Hash(hash), Some(current)) if *hash != current.content_hash => {
            Err(SaveError::Changed(slug()))
        }
        (Expected::Any | Expected::Absent, None) if count >= quota.flows as u64 => {
            Err(SaveError::TooMany(quota.flows))
        }
        _ => Ok(()),
    }
}

/// Adds a version, makes it the current one, and removes the oldest ones beyond the quota.
async fn add_version(
    tx: &DatabaseTransaction,
    batch: &Batch,
    write: &PreparedWrite,
    current: Option<flow::Model>,
) -> Result<flow::Model, DbErr> {
    let at = micros(batch.at);
    let content = flow_content::Model {
        user_id: batch.user.clone(),
        content_hash: write.content_hash.clone(),
        content_json: write.content_json.clone(),
        unused_since: None,
    };
    put_content(tx, content).await?;
    let row = flow::Model {
        user_id: batch.user.clone(),
        slug: write.slug.clone(),
        version: current.as_ref().map_or(1, |current| current.version + 1),
        content_hash: write.content_hash.clone(),
        summary_json: write.summary_json.clone(),
        created_at: current.as_ref().map_or(at, |current| current.created_at),
        updated_at: at,
    };
    let version = flow_version::Model {
        user_id: row.user_id.clone(),
        slug: row.slug.clone(),
        version: row.version,
        content_hash: row.content_hash.clone(),
        summary_json: row.summary_json.clone(),
        created_at: at,
    };
    flow_version::Entity::insert(version.into_active_model())
        .exec_without_returning(tx)
        .await?;
    if current.is_some() {
        row.clone()
            .into_active_model()
            .reset_all()
            .update(tx)
            .await?;
    } else {
        flow::Entity::insert(row.clone().into_active_model())
            .exec_without_returning(tx)
            .await?;
    }
    let versions = i64::try_from(batch.quota.versions.max(1)).unwrap_or(i64::MAX);
    let last_removed = row.version - versions;
    if last_removed > 0 {
        remove_versions(tx, &row.user_id, &row.slug, last_removed, at).await?;
    }
    Ok(row)
}

/// Stores a content that a version has.
async fn put_content(tx: &DatabaseTransaction, row: flow_content::Model) -> Result<(), DbErr> {
    let key = [
        flow_content::Column::UserId,
        flow_content::Column::ContentHash,
    ];
    let known = OnConflict::columns(key)
        .update_column(flow_content::Column::UnusedSince)
        .to_owned();
    flow_content::Entity::insert(row.into_active_model())
        .on_conflict(known)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Marks the contents of the versions up to `last` that no other version has, and deletes these
/// versions. Versions are removed from the oldest on, so a version above `last` or of another flow
/// is one that stays.
async fn remove_versions(
    tx: &DatabaseTransaction,
    user: &str,
    slug: &str,
    last: i64,
    at: i64,
) -> Result<(), DbErr> {
    const MARK: &str = "UPDATE flow_contents SET unused_since = $1 \
        WHERE user_id = $2 AND content_hash IN (SELECT v.content_hash FROM flow_versions v \
            WHERE v.user_id = $2 AND v.slug = $3 AND v.version <= $4) \
        AND NOT EXISTS (SELECT 1 FROM flow_versions o WHERE o.user_id = $2 \
            AND o.content_hash = flow_contents.content_hash AND (o.slug <> $3 OR o.version > $4))";
    const DELETE: &str =
        "DELETE FROM flow_versions WHERE user_id = $1 AND slug = $2 AND version <= $3";
    let marked = [at.into(), user.into(), slug.into(), last.into()];
    execute(tx, MARK, marked).await?;
    execute(tx, DELETE, [user.into(), slug.into(), last.into()]).await?;
    Ok(())
}

/// Deletion of a flow.
#[derive(Debug)]
pub(super) struct Deletion {
    pub(super) user: String,
    pub(super) slug: String,
    /// Hash that the current content must have.
    pub(super) expected: Option<String>,
    pub(super) at: DateTime<Utc>,
}

/// Deletes a flow with its versions.
pub(super) async fn delete(
    tx: &DatabaseTransaction,
    deletion: &Deletion,
) -> Result<DeletedFlow, TxError<StoreError>> {
    lock_owner(tx, &deletion.user).await?;
    let key = (deletion.user.clone(), deletion.slug.clone());
    let Some(row) = flow::Entity::find_by_id(key.clone()).one(tx).await? else {
        return Ok(DeletedFlow::NotFound);
    };
    let is_expected = |expected: &String| *expected == row.content_hash;
    if !deletion.expected.as_ref().is_none_or(is_expected) {
        return Ok(DeletedFlow::Changed);
    }
    remove_versions(tx, &key.0, &key.1, row.version, micros(deletion.at)).await?;
    flow::Entity::delete_by_id(key).exec(tx).await?;
    Ok(DeletedFlow::Removed)
}

/// Stores a content without a version, or renews it.
pub(super) async fn store_content(
    tx: &DatabaseTransaction,
    row: &flow_content::Model,
) -> Result<(), TxError<StoreError>> {
    const STORE: &str = "\
        INSERT INTO flow_contents (user_id, content_hash, content_json, unused_since) \
        VALUES ($1, $2, $3, $4) ON CONFLICT (user_id, content_hash) \
        DO UPDATE SET unused_since = excluded.unused_since \
        WHERE flow_contents.unused_since < excluded.unused_since";
    let values = [
        row.user_id.as_str().into(),
        row.content_hash.as_str().into(),
        row.content_json.as_str().into(),
        row.unused_since.into(),
    ];
    execute(tx, STORE, values).await?;
    Ok(())
}

/// Deletes contents that have been unused since `before` and that no thread pins.
pub(super) async fn sweep(
    tx: &DatabaseTransaction,
    (before, limit): (i64, i64),
) -> Result<usize, TxError<StoreError>> {
    const SWEEP: &str = "\
        DELETE FROM flow_contents WHERE unused_since <= ? AND (user_id, content_hash) IN (\
            SELECT c.user_id, c.content_hash FROM flow_contents c WHERE c.unused_since <= ? \
                AND NOT EXISTS (SELECT 1 FROM flow_pins p WHERE p.content_hash = c.content_hash) \
            ORDER BY c.unused_since LIMIT ?) \
        RETURNING 'gone'";
    let mut statements = StatementBatch::new(tx);
    statements.add(SWEEP, [before.into(), before.into(), limit.into()]);
    Ok(statements.run(tx).await?.len())
}

async fn execute<const N: usize>(
    tx: &DatabaseTransaction,
    sql: &str,
    values: [Value; N],
) -> Result<(), DbErr> {
    let statement = Statement::from_sql_and_values(tx.get_database_backend(), sql, values);
    tx.execute_raw(statement).await?;
    Ok(())
}
