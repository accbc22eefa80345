//! Checkpointer for tests. It counts the reads that load a state.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointWrite, Checkpointer, ExternalWrite, HistoryQuery,
    HistoryRetention, PutError, Snapshot,
};
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};

/// Wrapper that counts the calls of `get` and `log_tail`.
#[derive(Debug)]
pub(crate) struct CountingCheckpointer {
    pub(crate) inner: Arc<dyn Checkpointer>,
    pub(crate) reads: AtomicUsize,
}

impl CountingCheckpointer {
    pub(crate) fn over(inner: Arc<dyn Checkpointer>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            reads: AtomicUsize::new(0),
        })
    }

    /// Returns the number of reads since the last call.
    pub(crate) fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Checkpointer for CountingCheckpointer {
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError> {
        self.inner.put(write).await
    }

    async fn put_outside_run(&self, change: ExternalWrite) -> Result<(), PutError> {
        self.inner.put_outside_run(change).await
    }

    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
        max_bytes: Option<usize>,
    ) -> Result<bool, PutError> {
        self.inner.patch_metadata(thread, metadata, max_bytes).await
    }

    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get(thread, id).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError> {
        self.inner.list(thread, query).await
    }

    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError> {
        self.inner.list_meta(thread, query).await
    }

    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.log_tail(thread).await
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError> {
        self.inner.delete_run(thread, run).await
    }

    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &HistoryRetention,
        most: usize,
    ) -> Result<usize, CheckpointError> {
        self.inner.forget_history(thread, keep, most).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        self.inner.delete_thread(thread).await
    }

    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError> {
        self.inner.copy_thread(from, to).await
    }
}
