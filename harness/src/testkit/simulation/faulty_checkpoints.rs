//! Port of checkpoints over the faulty connection of one node.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::faulty_stores::FaultyStores;
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::runtime::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointWrite, Checkpointer, ExternalWrite, HistoryQuery,
    HistoryRetention, PutError, Snapshot,
};

#[async_trait]
impl Checkpointer for FaultyStores {
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError> {
        self.read("put", self.stores.put(write)).await
    }

    async fn put_outside_run(&self, change: ExternalWrite) -> Result<(), PutError> {
        self.read("put outside", self.stores.put_outside_run(change))
            .await
    }

    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
        max_bytes: Option<usize>,
    ) -> Result<bool, PutError> {
        self.read(
            "patch metadata",
            self.stores.patch_metadata(thread, metadata, max_bytes),
        )
        .await
    }

    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError> {
        self.read(
            "get checkpoint",
            Checkpointer::get(&*self.stores, thread, id),
        )
        .await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError> {
        self.read("history", Checkpointer::list(&*self.stores, thread, query))
            .await
    }

    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError> {
        self.read("facts of checkpoints", self.stores.list_meta(thread, query))
            .await
    }

    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError> {
        self.read("log tail", self.stores.log_tail(thread)).await
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError> {
        self.read(
            "delete checkpoints",
            Checkpointer::delete_run(&*self.stores, thread, run),
        )
        .await
    }

    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &HistoryRetention,
        most: usize,
    ) -> Result<usize, CheckpointError> {
        self.read(
            "forget a history",
            self.stores.forget_history(thread, keep, most),
        )
        .await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        self.read(
            "delete a thread's checkpoints",
            Checkpointer::delete_thread(&*self.stores, thread),
        )
        .await
    }

    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError> {
        self.read("copy", self.stores.copy_thread(from, to)).await
    }
}
