//! Queries and deletion of runs.

use async_trait::async_trait;
use bytes::Bytes;

use super::run_table::Run;
use super::tables::{InMemoryStores, Tables};
use crate::definition::{RunRecord, StoreError};
use crate::ports::{RunDeleteStore, RunListQuery, RunQueryStore, StoredRunRequest, UnfinishedRun};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

#[async_trait]
impl RunQueryStore for InMemoryStores {
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError> {
        let owner = owner.resolve()?;
        Ok(self
            .0
            .lock()
            .runs
            .get(run)
            .map(|run| &run.record)
            .filter(|record| owns(&owner, record))
            .cloned())
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let owner = owner.resolve()?;
        let tables = self.0.lock();
        let mut runs: Vec<&Run> = tables
            .runs
            .of_thread(thread)
            .filter(|run| owns(&owner, &run.record))
            .filter(|run| {
                query
                    .status
                    .is_none_or(|status| run.record.status.wire() == status.wire())
            })
            .collect();
        runs.sort_by_key(|run| std::cmp::Reverse((run.record.created_at, run.order)));
        Ok(runs
            .into_iter()
            .skip(query.offset)
            .take(query.limit)
            .map(|run| run.record.clone())
            .collect())
    }

    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.0.lock().active(thread))
    }

    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError> {
        Ok(self
            .0
            .lock()
            .request_of(run)
            .and_then(|request| request.values.clone()))
    }

    async fn stored_request(&self, run: &RunId) -> Result<Option<StoredRunRequest>, StoreError> {
        let tables = self.0.lock();
        let request = tables.runs.get(run).and_then(|run| run.recipe.as_deref());
        Ok(request.cloned())
    }

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        let owner = owner.resolve()?;
        let is_selected = |run: &RunRecord| {
            owns(&owner, run) && thread.is_none_or(|thread| run.thread_id == *thread)
        };
        let runs = self.0.lock().unfinished(is_selected);
        let to_unfinished = |run: RunRecord| UnfinishedRun {
            cancel_requested: run.cancel.is_some(),
            was_released: run.was_released(),
            user_id: run.user_id,
            run_id: run.run_id,
            thread_id: run.thread_id,
            status: run.status,
            created_at: run.created_at,
        };
        Ok(runs.into_iter().map(to_unfinished).collect())
    }
}

#[async_trait]
impl RunDeleteStore for InMemoryStores {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let finished = tables
            .runs
            .get(run)
            .is_some_and(|run| run.record.status.is_terminal());
        let Some(removed) = finished.then(|| tables.runs.remove(run)).flatten() else {
            return Ok(false);
        };
        tables.streams.remove(run);
        tables.forget_values(run);
        if let Some(thread) = tables.threads.get_mut(&removed.record.thread_id) {
            thread.events.retain(|event| event.event.run_id != *run);
            thread
                .checkpoints
                .retain(|_, checkpoint| checkpoint.meta.run_id.as_ref() != Some(run));
        }
        Ok(true)
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        for run in tables.runs.remove_thread(thread) {
            tables.streams.remove(&run);
            tables.forget_values(&run);
        }
        if let Some(thread) = tables.threads.get_mut(thread) {
            thread.events.clear();
        }
        Ok(())
    }
}

/// Reports whether `owner` may see the run. `None` is maintenance, which alone sees runs without a
/// user.
fn owns(owner: &Option<String>, record: &RunRecord) -> bool {
    owner.is_none() || record.user_id == *owner
}

impl Tables {
    pub(super) fn active(&self, thread: &ThreadId) -> Option<RunRecord> {
        let of_thread = self.runs.unfinished_of(thread);
        of_thread
            .min_by_key(|run| (!run.record.holds_thread(), run.record.created_at, run.order))
            .map(|run| run.record.clone())
    }

    /// Returns unfinished runs in the order in which they start.
    pub(super) fn unfinished(&self, predicate: impl Fn(&RunRecord) -> bool) -> Vec<RunRecord> {
        let mut runs: Vec<&Run> = self
            .runs
            .unfinished()
            .filter(|run| predicate(&run.record))
            .collect();
        runs.sort_by_key(|run| (run.record.created_at, run.order));
        runs.into_iter().map(|run| run.record.clone()).collect()
    }
}
