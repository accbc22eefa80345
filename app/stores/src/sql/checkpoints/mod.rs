//! Checkpointer over SQL: checkpoints and message logs.

mod external_update;
mod forget;
mod line;
mod lookup;
mod messages;
mod newest;
mod prepared_external_update;
mod prepared_write;
mod ranges;
mod read;
mod row;
mod write;

use async_trait::async_trait;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_runtime::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointWrite, Checkpointer, ExternalWrite, HistoryQuery,
    HistoryRetention, PutError, Snapshot,
};
use serde_json::{Map, Value};

use crate::db::connect::Database;
use crate::db::error::read_checkpoints;
use crate::db::space::WriteClass;
use crate::db::tx::FastWork;

pub(crate) use line::{LineEnd, checkpoint_exists, copy_line, finish_line};
pub(crate) use newest::{newest_channels, newest_states};
pub(crate) use prepared_write::{head_columns, insert_checkpoints};
pub(crate) use row::{new_row, signed};
pub(crate) use write::{
    add_checkpoints, delete_past_checkpoints, delete_run_checkpoints, delete_thread_checkpoints,
    has_pending_nodes, new_messages, positions_to_verify, refuse_incomplete,
};

/// Checkpointer over SQL.
#[derive(Debug, Clone)]
pub struct SqlCheckpointer {
    db: Database,
}

impl SqlCheckpointer {
    /// Creates a checkpointer over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl Checkpointer for SqlCheckpointer {
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError> {
        self.db
            .writes()
            .run([write], |tx, writes| {
                Box::pin(write::write_checkpoints(tx, writes))
            })
            .await
    }

    async fn put_outside_run(&self, change: ExternalWrite) -> Result<(), PutError> {
        let thread = &change.write.meta.thread_id;
        let check = self.db.quota_check_of_owner(thread).await;
        let check = check.and_then(|check| Ok(check.size()?));
        check.map_err(CheckpointError::from)?;
        self.db
            .writes()
            .run_fast(
                WriteClass::Creation,
                change,
                |tx, change| Box::pin(external_update::write_external_update(tx, change)),
                Some(FastWork {
                    sqlite: prepared_external_update::write,
                    postgres: None,
                }),
            )
            .await
    }

    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
        max_bytes: Option<usize>,
    ) -> Result<bool, PutError> {
        let work = (thread.clone(), metadata, max_bytes);
        self.db
            .writes()
            .run(work, |tx, (thread, metadata, max_bytes)| {
                Box::pin(external_update::patch_metadata(
                    tx, thread, metadata, *max_bytes,
                ))
            })
            .await
    }

    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError> {
        read::get(self.db.reads(), thread, id).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError> {
        read::list(self.db.reads(), thread, query).await
    }

    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError> {
        read::list_meta(self.db.reads(), thread, query).await
    }

    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError> {
        read_checkpoints(lookup::log_tail(self.db.reads(), thread).await)
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError> {
        let work = (thread.clone(), run.clone());
        self.db
            .writes()
            .release(work, |tx, (thread, run)| {
                Box::pin(async move { Ok(delete_run_checkpoints(tx, thread, run).await?) })
            })
            .await
    }

    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &HistoryRetention,
        limit: usize,
    ) -> Result<usize, CheckpointError> {
        forget::forget_history(&self.db, thread, keep, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        self.db
            .writes()
            .release(thread.clone(), |tx, thread| {
                Box::pin(async move { Ok(delete_thread_checkpoints(tx, thread).await?) })
            })
            .await
    }

    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError> {
        let work = (from.clone(), to.clone());
        self.db
            .writes()
            .create(work, |tx, (from, to)| {
                Box::pin(async move { Ok(write::copy_thread(tx, from, to).await?) })
            })
            .await
    }
}
