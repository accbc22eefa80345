//! Checkpoints over the message log.

use std::collections::HashSet;
use std::ops::Bound;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::tables::{InMemoryStores, StoredCheckpoint, Thread};
use crate::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointWrite, Checkpointer, ExternalWrite, HistoryQuery,
    HistoryRetention, PutError, Snapshot, ThreadHead, expand,
};
use crate::definition::StoreError;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_core::json_size::merge_within;
use deerflow_core::state::{Histories, ThreadState};

#[async_trait]
impl Checkpointer for InMemoryStores {
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError> {
        let mut tables = self.0.lock();
        let thread = tables
            .threads
            .entry(write.meta.thread_id.clone())
            .or_default();
        thread
            .validate_writes(std::slice::from_ref(&write))
            .map_err(StoreError::Failed)?;
        thread.store_checkpoint(write);
        Ok(())
    }

    async fn put_outside_run(&self, change: ExternalWrite) -> Result<(), PutError> {
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
            .validate_writes(std::slice::from_ref(&change.write))
            .map_err(|why| CheckpointError::from(StoreError::Failed(why)))?;
        thread.store_checkpoint(change.write);
        thread.title = change.title;
        thread.status = change.status;
        Ok(())
    }

    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
        max_bytes: Option<usize>,
    ) -> Result<bool, PutError> {
        let mut tables = self.0.lock();
        if let Some(active) = tables.active(thread) {
            return Err(PutError::Busy {
                run_id: active.run_id.clone(),
                thread_id: thread.clone(),
            });
        }
        let Some(existing) = tables.threads.get_mut(thread) else {
            return Err(PutError::NoThread(thread.clone()));
        };
        let Some(mut newest) = existing.checkpoints.last_entry() else {
            return Ok(false);
        };
        let newest = newest.get_mut();
        let before = newest.meta.metadata.clone();
        newest.meta.metadata = merge_within("metadata", before, metadata, max_bytes)?;
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
        let matches = match id {
            Some(id) => thread.checkpoints.get(id),
            None => thread.newest(),
        };
        matches
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
                .retain(|_, checkpoint| checkpoint.meta.run_id.as_ref() != Some(run));
        }
        Ok(())
    }

    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &HistoryRetention,
        most: usize,
    ) -> Result<usize, CheckpointError> {
        let mut tables = self.0.lock();
        if tables.active(thread).is_some() {
            return Ok(0);
        }
        Ok(tables
            .threads
            .get_mut(thread)
            .map_or(0, |thread| thread.prune(keep, most)))
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
        let mut checkpoints = source.checkpoints.clone();
        for checkpoint in checkpoints.values_mut() {
            checkpoint.meta.thread_id = to.clone();
        }
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
    /// Returns the checkpoints that match a query, newest first.
    fn matching(&self, query: &HistoryQuery) -> Vec<&StoredCheckpoint> {
        let before = query
            .before
            .as_ref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        self.checkpoints
            .range((Bound::Unbounded, before))
            .rev()
            .map(|(_, checkpoint)| checkpoint)
            .filter(|checkpoint| {
                let public = checkpoint.meta.public_metadata();
                query
                    .metadata
                    .iter()
                    .all(|(key, value)| public.get(key) == Some(value))
            })
            .take(query.limit)
            .collect()
    }

    /// Removes up to `most` checkpoints that `keep` does not select and that are not the parent of
    /// a selected one. Returns their number.
    fn prune(&mut self, keep: &HistoryRetention, most: usize) -> usize {
        let newest = usize::try_from(keep.newest.max(1)).unwrap_or(usize::MAX);
        let mut ids = self.checkpoints.keys();
        let first = ids
            .nth(self.checkpoints.len().saturating_sub(newest))
            .cloned();
        let is_retained = |meta: &CheckpointMeta| {
            first
                .as_ref()
                .is_none_or(|first| meta.checkpoint_id >= *first)
                || keep.since.is_some_and(|since| meta.created_at >= since)
        };
        let (staying, others): (Vec<_>, Vec<_>) = self
            .checkpoints
            .values()
            .map(|checkpoint| &checkpoint.meta)
            .partition(|meta| is_retained(meta));
        let followed: HashSet<_> = staying
            .iter()
            .filter_map(|meta| meta.parent_id.as_ref())
            .collect();
        let removed: Vec<_> = others
            .iter()
            .map(|meta| &meta.checkpoint_id)
            .filter(|id| !followed.contains(id))
            .take(most)
            .cloned()
            .collect();
        for id in &removed {
            self.checkpoints.remove(id);
        }
        removed.len()
    }

    pub(super) fn newest(&self) -> Option<&StoredCheckpoint> {
        self.checkpoints.last_key_value().map(|(_, newest)| newest)
    }

    pub(super) fn head(&self) -> ThreadHead {
        ThreadHead {
            checkpoint_id: self
                .newest()
                .map(|newest| newest.meta.checkpoint_id.clone()),
            log_tail: self.log_tail(),
        }
    }

    fn log_tail(&self) -> u64 {
        self.log
            .last_key_value()
            .map_or(0, |(position, _)| *position)
    }

    fn snapshot(&self, checkpoint: &StoredCheckpoint) -> Result<Snapshot, CheckpointError> {
        let messages = expand(&checkpoint.layout)
            .map(|position| {
                self.log
                    .get(&position)
                    .map(|message| (position, message.clone()))
                    .ok_or_else(|| CheckpointError::Damaged {
                        thread_id: checkpoint.meta.thread_id.clone(),
                        id: checkpoint.meta.checkpoint_id.to_string(),
                        reason: format!("the log has no message at position {position}"),
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut channels = IndexMap::clone(&checkpoint.channels);
        channels.shift_remove(Histories::KEY);
        if let Some(lengths) = &checkpoint.histories {
            channels.insert(Histories::KEY.to_owned(), lengths.clone());
        }
        Ok(Snapshot {
            meta: checkpoint.meta.clone(),
            state: ThreadState::restored(messages, channels),
            log_tail: self.log_tail(),
        })
    }
}

impl Thread {
    /// Validates that ids and positions are unique and that all messages of a layout exist.
    pub(super) fn validate_writes(&self, writes: &[CheckpointWrite]) -> Result<(), String> {
        let known = |id: &CheckpointId| self.checkpoints.contains_key(id);
        let mut new = HashSet::new();
        for write in writes {
            match (known(&write.meta.checkpoint_id), write.amends) {
                (true, true) => continue,
                (true, false) => {
                    return Err(format!(
                        "checkpoint {} already exists",
                        write.meta.checkpoint_id
                    ));
                }
                (false, true) => {
                    return Err(format!(
                        "checkpoint {} does not exist and cannot be amended",
                        write.meta.checkpoint_id
                    ));
                }
                (false, false) => {}
            }
            if let Some((position, _)) = write
                .new_messages
                .iter()
                .find(|(position, _)| self.log.contains_key(position))
            {
                return Err(format!("position {position} of the log is already used"));
            }
            new.extend(write.new_messages.iter().map(|(position, _)| *position));
            if let Some(position) = expand(&write.layout)
                .find(|position| !new.contains(position) && !self.log.contains_key(position))
            {
                return Err(format!(
                    "checkpoint {} needs message {position}, which the log does not have",
                    write.meta.checkpoint_id
                ));
            }
        }
        Ok(())
    }

    pub(super) fn store_checkpoint(&mut self, write: CheckpointWrite) {
        let id = &write.meta.checkpoint_id;
        if write.amends
            && let Some(existing) = self.checkpoints.get_mut(id)
        {
            (existing.meta.next, existing.meta.machine) = (write.meta.next, write.meta.machine);
            return;
        }
        self.log.extend(write.new_messages);
        let stored = StoredCheckpoint {
            meta: write.meta,
            channels: write.channels,
            histories: write.histories,
            layout: write.layout,
        };
        let id = stored.meta.checkpoint_id.clone();
        self.checkpoints.insert(id, stored);
    }
}
