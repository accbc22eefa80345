//! Checkpoints over the message log.

use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{MemoryStores, StoredCheckpoint, Thread};
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::runtime::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointWrite, Checkpointer, HistoryQuery, KeptHistory,
    OutsideWrite, PutError, Snapshot, expand,
};
use crate::runtime::runs::store::StoreError;
use crate::state::ThreadState;

#[async_trait]
impl Checkpointer for MemoryStores {
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError> {
        let mut tables = self.0.lock();
        let thread = tables
            .threads
            .entry(write.meta.thread_id.clone())
            .or_default();
        thread
            .refuse_misfits(std::slice::from_ref(&write))
            .map_err(StoreError::Failed)?;
        thread.keep(write);
        Ok(())
    }

    async fn put_outside_run(&self, change: OutsideWrite) -> Result<(), PutError> {
        let mut tables = self.0.lock();
        let thread_id = change.write.meta.thread_id.clone();
        if let Some(active) = tables.active(&thread_id) {
            return Err(PutError::Busy {
                run_id: active.run_id.clone(),
                thread_id,
            });
        }
        let Some(thread) = tables.threads.get_mut(&thread_id) else {
            return Err(PutError::NoThread(thread_id));
        };
        let newest = thread.newest().map(|newest| &newest.meta.checkpoint_id);
        if newest != change.newest.as_ref() || thread.log_tail() != change.log_tail {
            return Err(PutError::Moved(thread_id));
        }
        thread
            .refuse_misfits(std::slice::from_ref(&change.write))
            .map_err(|why| CheckpointError::from(StoreError::Failed(why)))?;
        thread.keep(change.write);
        thread.title = change.title;
        thread.status = change.status;
        Ok(())
    }

    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
    ) -> Result<bool, PutError> {
        let mut tables = self.0.lock();
        if let Some(active) = tables.active(thread) {
            return Err(PutError::Busy {
                run_id: active.run_id.clone(),
                thread_id: thread.clone(),
            });
        }
        let Some(held) = tables.threads.get_mut(thread) else {
            return Err(PutError::NoThread(thread.clone()));
        };
        let newest = held
            .checkpoints
            .iter_mut()
            .max_by(|a, b| a.meta.checkpoint_id.cmp(&b.meta.checkpoint_id));
        let Some(newest) = newest else {
            return Ok(false);
        };
        newest.meta.metadata.extend(metadata);
        Ok(true)
    }

    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError> {
        let tables = self.0.lock();
        let Some(thread) = tables.threads.get(thread) else {
            return Ok(None);
        };
        let found = match id {
            Some(id) => thread
                .checkpoints
                .iter()
                .find(|checkpoint| checkpoint.meta.checkpoint_id == *id),
            None => thread.newest(),
        };
        found
            .map(|checkpoint| thread.snapshot(checkpoint))
            .transpose()
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError> {
        let tables = self.0.lock();
        let Some(thread) = tables.threads.get(thread) else {
            return Ok(Vec::new());
        };
        thread
            .matching(query)
            .into_iter()
            .map(|checkpoint| thread.snapshot(checkpoint))
            .collect()
    }

    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError> {
        let tables = self.0.lock();
        let Some(thread) = tables.threads.get(thread) else {
            return Ok(Vec::new());
        };
        Ok(thread
            .matching(query)
            .into_iter()
            .map(|checkpoint| checkpoint.meta.clone())
            .collect())
    }

    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError> {
        Ok(self
            .0
            .lock()
            .threads
            .get(thread)
            .map_or(0, Thread::log_tail))
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError> {
        if let Some(thread) = self.0.lock().threads.get_mut(thread) {
            thread
                .checkpoints
                .retain(|checkpoint| checkpoint.meta.run_id.as_ref() != Some(run));
        }
        Ok(())
    }

    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &KeptHistory,
        most: usize,
    ) -> Result<usize, CheckpointError> {
        let mut tables = self.0.lock();
        if tables.active(thread).is_some() {
            return Ok(0);
        }
        Ok(tables
            .threads
            .get_mut(thread)
            .map_or(0, |thread| thread.forget(keep, most)))
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        if let Some(thread) = self.0.lock().threads.get_mut(thread) {
            thread.checkpoints.clear();
            thread.log.clear();
        }
        Ok(())
    }

    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError> {
        let mut tables = self.0.lock();
        let Some(source) = tables.threads.get(from) else {
            return Ok(());
        };
        let (user_id, log) = (source.user_id.clone(), source.log.clone());
        let checkpoints = source.checkpoints.iter().cloned().map(|mut checkpoint| {
            checkpoint.meta.thread_id = to.clone();
            checkpoint
        });
        let checkpoints = checkpoints.collect();
        let target = tables.threads.entry(to.clone()).or_insert_with(|| Thread {
            user_id,
            ..Thread::default()
        });
        target.log = log;
        target.checkpoints = checkpoints;
        Ok(())
    }
}

impl Thread {
    /// The checkpoints a query means, newest first.
    fn matching(&self, query: &HistoryQuery) -> Vec<&StoredCheckpoint> {
        let mut found: Vec<_> = self
            .checkpoints
            .iter()
            .filter(|checkpoint| {
                query
                    .before
                    .as_ref()
                    .is_none_or(|before| checkpoint.meta.checkpoint_id < *before)
            })
            .filter(|checkpoint| {
                let shown = checkpoint.meta.public_metadata();
                query
                    .metadata
                    .iter()
                    .all(|(key, value)| shown.get(key) == Some(value))
            })
            .collect();
        found.sort_by(|a, b| b.meta.checkpoint_id.cmp(&a.meta.checkpoint_id));
        found.truncate(query.limit);
        found
    }

    /// Removes checkpoints that neither stay nor are followed by one that does.
    fn forget(&mut self, keep: &KeptHistory, most: usize) -> usize {
        let mut ids: Vec<_> = self
            .checkpoints
            .iter()
            .map(|checkpoint| checkpoint.meta.checkpoint_id.clone())
            .collect();
        ids.sort();
        let newest = usize::try_from(keep.newest.max(1)).unwrap_or(usize::MAX);
        let first = ids.get(ids.len().saturating_sub(newest)).cloned();
        let stays = |meta: &CheckpointMeta| {
            first
                .as_ref()
                .is_none_or(|first| meta.checkpoint_id >= *first)
                || keep.since.is_some_and(|since| meta.created_at >= since)
        };
        let (staying, others): (Vec<_>, Vec<_>) = self
            .checkpoints
            .iter()
            .map(|checkpoint| &checkpoint.meta)
            .partition(|meta| stays(meta));
        let followed: HashSet<_> = staying
            .iter()
            .filter_map(|meta| meta.parent_id.as_ref())
            .collect();
        let mut gone: Vec<_> = others
            .iter()
            .map(|meta| &meta.checkpoint_id)
            .filter(|id| !followed.contains(id))
            .cloned()
            .collect();
        gone.sort();
        gone.truncate(most);
        self.checkpoints
            .retain(|checkpoint| !gone.contains(&checkpoint.meta.checkpoint_id));
        gone.len()
    }

    pub(super) fn newest(&self) -> Option<&StoredCheckpoint> {
        self.checkpoints
            .iter()
            .max_by(|a, b| a.meta.checkpoint_id.cmp(&b.meta.checkpoint_id))
    }

    fn log_tail(&self) -> u64 {
        self.log.last_key_value().map_or(0, |(place, _)| *place)
    }

    fn snapshot(&self, checkpoint: &StoredCheckpoint) -> Result<Snapshot, CheckpointError> {
        let messages = expand(&checkpoint.layout)
            .map(|place| {
                self.log
                    .get(&place)
                    .map(|message| (place, message.clone()))
                    .ok_or_else(|| CheckpointError::Damaged {
                        thread_id: checkpoint.meta.thread_id.clone(),
                        id: checkpoint.meta.checkpoint_id.to_string(),
                        reason: format!("the log has no message at place {place}"),
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let channels = checkpoint
            .channels
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Ok(Snapshot {
            meta: checkpoint.meta.clone(),
            state: ThreadState::restored(messages, channels),
            log_tail: self.log_tail(),
        })
    }
}
