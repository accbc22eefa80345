//! Creates, changes and deletes threads within a transaction.

use chrono::{DateTime, Utc};
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::quota::{Quota, QuotaExceeded};
use deerflow_domain::threads::{
    Created, Deleted, NewThread, SweptThreads, ThreadPatch, ThreadRecord,
};
use deerflow_runtime::runs::ThreadStatus;
use deerflow_runtime::runs::store::{CreatedResource, StoreError};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait,
    PaginatorTrait, QueryFilter, QuerySelect, Statement, Value,
};
use serde_json::Map;

use super::facts;
use super::row::{is_pinned, new_row, record};
use crate::db::entity::{micros, run, short_title, thread};
use crate::db::error::{DbFailure, FromDbFailure};
use crate::db::json::{from_json, json_text};
use crate::db::quotas::QuotaCheck;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxError;
use crate::sql::checkpoints::{delete_past_checkpoints, delete_thread_checkpoints};
use crate::sql::memories::delete_pending_updates;
use crate::sql::requests::{claim_key, key_claimed, lookup_key};
use crate::sql::runs::delete_thread_runs;

/// Inserts no row if the id is in use, or a deleted thread of another user had it.
pub(super) const CREATE_THREAD: &str = "\
    INSERT INTO threads_meta (thread_id, assistant_id, user_id, status, metadata_json, pinned, temporary, created_at, updated_at, \
        state_updated_at, ttl_micros, run_assistant_id, keep_latest) \
    SELECT $1, $2, $3, 'idle', $4, $5, FALSE, $6, $6, $6, $7, $8, $9 \
    WHERE NOT EXISTS (SELECT 1 FROM deleted_threads WHERE thread_id = $1 AND user_id IS DISTINCT FROM $3) \
    ON CONFLICT (thread_id) DO NOTHING";

/// Reason why the transaction of a new thread is rolled back.
pub(super) enum CreateRefusal {
    /// No thread was created, so the idempotency key is free again.
    Found(Box<Created>),
    Failed(StoreError),
}

impl FromDbFailure for CreateRefusal {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<QuotaExceeded> for CreateRefusal {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self::Failed(exceeded.into())
    }
}

/// Creates the thread, or returns the existing one.
pub(super) async fn create(
    tx: &DatabaseTransaction,
    new: &NewThread,
    check: &QuotaCheck,
) -> Result<Created, TxError<CreateRefusal>> {
    if let Some(key) = &new.request {
        let mut statements = StatementBatch::new(tx);
        claim_key(
            &mut statements,
            key,
            &CreatedResource::Thread(new.thread_id.clone()),
            new.at,
        );
        if !key_claimed(&statements.run(tx).await?) {
            return Err(TxError::Refused(CreateRefusal::Found(Box::new(
                Created::Known(lookup_key(tx, key).await?),
            ))));
        }
    }
    let row = new_row(new);
    let values: [Value; 9] = [
        row.thread_id.clone().into(),
        row.assistant_id.clone().into(),
        row.user_id.clone().into(),
        row.metadata_json.clone().into(),
        row.pinned.into(),
        row.created_at.into(),
        row.ttl_micros.into(),
        row.run_assistant_id.clone().into(),
        row.keep_latest.into(),
    ];
    let inserted = tx
        .execute_raw(Statement::from_sql_and_values(
            tx.get_database_backend(),
            CREATE_THREAD,
            values,
        ))
        .await?;
    if inserted.rows_affected() == 1 {
        check.inserted(tx, Quota::Threads).await?;
        facts::write(tx, &row, &Map::new(), &new.metadata).await?;
        return Ok(Created::New(record(row)?));
    }
    let found = match thread::Entity::find_by_id(new.thread_id.as_str())
        .one(tx)
        .await?
    {
        Some(existing) if existing.user_id == new.user_id => Created::Existing(record(existing)?),
        _ => Created::Taken,
    };
    if new.request.is_some() {
        Err(TxError::Refused(CreateRefusal::Found(Box::new(found))))
    } else {
        Ok(found)
    }
}

/// A change, with the thread and the user it applies to.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) thread: ThreadId,
    pub(super) user: Option<String>,
    pub(super) patch: ThreadPatch,
    pub(super) at: DateTime<Utc>,
}

/// Merges the change into the current row, under its lock.
pub(super) async fn patch(
    tx: &DatabaseTransaction,
    work: &Patch,
) -> Result<Option<ThreadRecord>, TxError<StoreError>> {
    let Some(mut row) = thread::locked(tx, &work.thread, work.user.as_deref()).await? else {
        return Ok(None);
    };
    let before: Map<String, serde_json::Value> = from_json(&row.metadata_json)
        .map_err(|reason| DbErr::Type(format!("thread {} is damaged: {reason}", row.thread_id)))?;
    let metadata = work
        .patch
        .merged(before.clone())
        .map_err(TxError::Refused)?;
    facts::write(tx, &row, &before, &metadata).await?;
    row.pinned = is_pinned(&metadata);
    row.metadata_json = json_text(&metadata);
    if let Some(title) = &work.patch.title {
        row.display_name = title.as_deref().map(short_title);
    }
    if let Some(status) = work.patch.status {
        row.status = status.as_str().to_owned();
    }
    if let Some(ttl) = work.patch.ttl {
        row.ttl_micros = ttl.after.num_microseconds();
        row.keep_latest = thread::keeps_latest(Some(ttl));
    }
    if work.patch.touch {
        row.updated_at = micros(work.at);
    }
    thread::Entity::update_many()
        .col_expr(thread::Column::Pinned, Expr::value(row.pinned))
        .col_expr(
            thread::Column::MetadataJson,
            Expr::value(row.metadata_json.as_str()),
        )
        .col_expr(
            thread::Column::DisplayName,
            Expr::value(row.display_name.clone()),
        )
        .col_expr(thread::Column::Status, Expr::value(row.status.as_str()))
        .col_expr(thread::Column::UpdatedAt, Expr::value(row.updated_at))
        .col_expr(thread::Column::TtlMicros, Expr::value(row.ttl_micros))
        .col_expr(thread::Column::KeepLatest, Expr::value(row.keep_latest))
        .filter(thread::Column::ThreadId.eq(row.thread_id.as_str()))
        .exec(tx)
        .await?;
    Ok(Some(record(row)?))
}

const INSERT_TOMBSTONE: &str = "\
    INSERT INTO deleted_threads (thread_id, user_id) VALUES ($1, $2) \
    ON CONFLICT (thread_id) DO UPDATE SET user_id = excluded.user_id";

/// Deletes the thread with all its data, and records its former owner.
pub(super) async fn delete(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    user: Option<&str>,
) -> Result<Deleted, TxError<StoreError>> {
    let Some(row) = thread::locked(tx, thread, user).await? else {
        return Ok(Deleted::NotFound);
    };
    if is_busy(tx, thread).await? {
        return Ok(Deleted::Busy);
    }
    delete_thread(tx, thread, row).await?;
    Ok(Deleted::Removed)
}

/// Returns `true` if a run is active on the thread.
async fn is_busy(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<bool, DbErr> {
    let active = run::Column::ThreadId
        .eq(thread.as_str())
        .and(run::is_active());
    Ok(run::Entity::find().filter(active).count(tx).await? > 0)
}

/// Returns the ids of a thread's runs.
async fn runs_of(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<Vec<RunId>, DbErr> {
    let of_thread = run::Entity::find().filter(run::Column::ThreadId.eq(thread.as_str()));
    let ids = of_thread.select_only().column(run::Column::RunId);
    let ids: Vec<String> = ids.into_tuple().all(tx).await?;
    Ok(ids
        .into_iter()
        .filter_map(|id| RunId::parse(id).ok())
        .collect())
}

/// Deletes a locked row with all data of its thread. Facts are deleted with the row.
async fn delete_thread(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    row: thread::Model,
) -> Result<(), TxError<StoreError>> {
    delete_thread_runs::<StoreError>(tx, thread).await?;
    delete_thread_checkpoints(tx, thread).await?;
    delete_pending_updates(tx, thread).await?;
    thread::Entity::delete_by_id(thread.as_str())
        .exec(tx)
        .await?;
    let values: [Value; 2] = [thread.as_str().into(), row.user_id.into()];
    tx.execute_raw(Statement::from_sql_and_values(
        tx.get_database_backend(),
        INSERT_TOMBSTONE,
        values,
    ))
    .await?;
    Ok(())
}

/// Deletes the older states of a thread that is not busy.
pub(super) async fn forget(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    user: Option<&str>,
) -> Result<Deleted, TxError<StoreError>> {
    if thread::locked(tx, thread, user).await?.is_none() {
        return Ok(Deleted::NotFound);
    }
    if is_busy(tx, thread).await? {
        return Ok(Deleted::Busy);
    }
    delete_past_checkpoints(tx, thread).await?;
    Ok(Deleted::Removed)
}

/// Deletes expired threads, or their older states. Each is locked before its expiry is checked
/// again, because it may have changed in between.
pub(super) async fn sweep(
    tx: &DatabaseTransaction,
    at: DateTime<Utc>,
    limit: usize,
) -> Result<SweptThreads, TxError<StoreError>> {
    let end = Expr::col(thread::Column::UpdatedAt).add(Expr::col(thread::Column::TtlMicros));
    // Written like the index's condition.
    let untouched = || {
        thread::Column::ForgotAt
            .is_null()
            .or(Expr::col(thread::Column::ForgotAt).lte(Expr::col(thread::Column::UpdatedAt)))
    };
    let over = || {
        thread::Column::TtlMicros
            .is_not_null()
            .and(untouched())
            .and(end.clone().lte(micros(at)))
    };
    let rest = thread::Column::Status.ne(ThreadStatus::Busy.as_str());
    let rows = thread::Entity::find()
        .filter(over())
        .filter(rest)
        .limit(limit as u64)
        .all(tx)
        .await?;
    let mut swept = SweptThreads::default();
    for row in rows {
        let Ok(thread) = record(row.clone()).inspect_err(
            |error| tracing::error!(%error, "a thread is damaged, it cannot be swept"),
        ) else {
            continue;
        };
        let still = thread::Entity::find_by_id(row.thread_id.as_str())
            .filter(over())
            .lock_exclusive()
            .one(tx)
            .await?;
        let Some(row) = still else { continue };
        if is_busy(tx, &thread.thread_id).await? {
            continue;
        }
        if row.keep_latest {
            delete_past_checkpoints(tx, &thread.thread_id).await?;
            let of_thread = thread::Column::ThreadId.eq(row.thread_id);
            let forgot = thread::Entity::update_many()
                .col_expr(thread::Column::ForgotAt, Expr::value(micros(at)));
            forgot.filter(of_thread).exec(tx).await?;
            swept.trimmed += 1;
        } else {
            swept.runs.extend(runs_of(tx, &thread.thread_id).await?);
            delete_thread(tx, &thread.thread_id, row).await?;
            swept.deleted.push(thread);
        }
    }
    Ok(swept)
}
