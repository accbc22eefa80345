//! External updates of a thread's state. They are refused if the thread is busy, or has changed
//! since the caller read it.

use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::json_size::merge_within;
use deerflow_runtime::checkpoint::{CheckpointError, ExternalWrite, PutError};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, ExprTrait, QueryFilter};
use serde_json::{Map, Value};

use super::lookup::{log_tail, newest_row};
use super::row::meta;
use super::write::write_checkpoints;
use crate::db::entity::{checkpoint, micros, run, short_title, thread};
use crate::db::json::json_text;
use crate::db::tx::TxError;

/// Writes the checkpoint and the thread row together. The row is locked first, as in admission, so
/// that no run starts in between.
pub(super) async fn write_external_update(
    tx: &DatabaseTransaction,
    change: &ExternalWrite,
) -> Result<(), TxError<PutError>> {
    let thread = &change.write.meta.thread_id;
    lock_idle_thread(tx, thread).await?;
    let newest = newest_row(tx, thread).await?.map(|row| row.checkpoint_id);
    if newest.as_deref() != change.newest.as_ref().map(|id| id.as_str())
        || log_tail(tx, thread).await? != change.log_tail
    {
        return Err(TxError::Refused(PutError::Moved(thread.clone())));
    }
    write_checkpoints(tx, std::slice::from_ref(&change.write)).await?;
    thread::Entity::update_many()
        .col_expr(
            thread::Column::DisplayName,
            Expr::value(change.title.as_deref().map(short_title)),
        )
        .col_expr(thread::Column::Status, Expr::value(change.status.as_str()))
        .col_expr(
            thread::Column::UpdatedAt,
            Expr::value(micros(change.write.meta.created_at)),
        )
        .col_expr(
            thread::Column::StateUpdatedAt,
            Expr::value(micros(change.write.meta.created_at)),
        )
        .filter(thread::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Merges entries into the metadata of the newest checkpoint.
pub(super) async fn patch_metadata(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    entries: &Map<String, Value>,
    max_bytes: Option<usize>,
) -> Result<bool, TxError<PutError>> {
    lock_idle_thread(tx, thread).await?;
    let Some(row) = newest_row(tx, thread).await? else {
        return Ok(false);
    };
    let before = meta(&row)
        .map_err(|error| TxError::Refused(error.into()))?
        .metadata;
    let metadata = merge_within("metadata", before, entries.clone(), max_bytes)
        .map_err(|refused| TxError::Refused(refused.into()))?;
    checkpoint::Entity::update_many()
        .col_expr(
            checkpoint::Column::MetadataJson,
            Expr::value(json_text(&metadata)),
        )
        .filter(
            checkpoint::Column::ThreadId
                .eq(thread.as_str())
                .and(checkpoint::Column::CheckpointId.eq(row.checkpoint_id)),
        )
        .exec(tx)
        .await?;
    Ok(true)
}

/// Locks the row of a thread. Refuses a thread that does not exist or has an active run.
async fn lock_idle_thread(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), TxError<PutError>> {
    if thread::locked(tx, thread, None).await?.is_none() {
        return Err(TxError::Refused(PutError::NoThread(thread.clone())));
    }
    let of_thread = run::Entity::find().filter(run::Column::ThreadId.eq(thread.as_str()));
    if let Some(active) = of_thread.filter(run::is_active()).one(tx).await? {
        let run_id = RunId::parse(active.run_id).map_err(|error| {
            TxError::Refused(CheckpointError::from(StoreError::Failed(error.to_string())).into())
        })?;
        return Err(TxError::Refused(PutError::Busy {
            thread_id: thread.clone(),
            run_id,
        }));
    }
    Ok(())
}
