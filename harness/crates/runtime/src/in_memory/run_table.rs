//! Runs by id, with indexes for the reads that each run makes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::agent::CallProgress;
use crate::definition::RunRecord;
use crate::ports::StoredRunRequest;
use deerflow_core::ids::{NodeId, RunId, ThreadId};

#[derive(Debug)]
pub(super) struct Run {
    pub(super) record: RunRecord,
    pub(super) order: u64,
    /// Earliest start of a delayed run.
    pub(super) earliest_start: Option<DateTime<Utc>>,
    /// Time of the first start.
    pub(super) started: Option<DateTime<Utc>>,
    pub(super) last_batch: u64,
    pub(super) recipe: Option<Arc<StoredRunRequest>>,
    pub(super) owner: Option<NodeId>,
    pub(super) losses: u32,
    pub(super) calls: HashMap<String, CallProgress>,
}

/// Runs, with indexes of the unfinished ones, so that admissions and commits do not search those
/// that ended.
#[derive(Debug, Default)]
pub(super) struct RunTable {
    rows: BTreeMap<RunId, Run>,
    of_threads: HashMap<ThreadId, ThreadRuns>,
    unfinished: BTreeSet<RunId>,
}

/// Ids of a thread's runs: unfinished ones in the order of their admission, others in the order of
/// their ends.
#[derive(Debug, Default)]
struct ThreadRuns {
    unfinished: Vec<RunId>,
    ended: Vec<RunId>,
}

impl RunTable {
    pub(super) fn get(&self, run: &RunId) -> Option<&Run> {
        self.rows.get(run)
    }

    /// Returns a run. A caller that sets a terminal status has to call [`Self::mark_ended`].
    pub(super) fn get_mut(&mut self, run: &RunId) -> Option<&mut Run> {
        self.rows.get_mut(run)
    }

    /// Adds an unfinished run.
    pub(super) fn insert(&mut self, run: Run) {
        let record = &run.record;
        let of_thread = self.of_threads.entry(record.thread_id.clone()).or_default();
        of_thread.unfinished.push(record.run_id.clone());
        self.unfinished.insert(record.run_id.clone());
        self.rows.insert(record.run_id.clone(), run);
    }

    /// Moves a run that ended out of the indexes of unfinished runs.
    pub(super) fn mark_ended(&mut self, run: &RunId) {
        self.unfinished.remove(run);
        let thread = self.rows.get(run).map(|row| &row.record.thread_id);
        if let Some(of_thread) = thread.and_then(|thread| self.of_threads.get_mut(thread)) {
            of_thread.unfinished.retain(|other| other != run);
            of_thread.ended.push(run.clone());
        }
    }

    pub(super) fn remove(&mut self, run: &RunId) -> Option<Run> {
        let removed = self.rows.remove(run)?;
        self.unfinished.remove(run);
        let thread = &removed.record.thread_id;
        if let Some(of_thread) = self.of_threads.get_mut(thread) {
            of_thread.unfinished.retain(|other| other != run);
            of_thread.ended.retain(|other| other != run);
            if of_thread.unfinished.is_empty() && of_thread.ended.is_empty() {
                self.of_threads.remove(thread);
            }
        }
        Some(removed)
    }

    /// Removes the runs of a thread and returns their ids.
    pub(super) fn remove_thread(&mut self, thread: &ThreadId) -> Vec<RunId> {
        let ids = self.ids_of_thread(thread);
        self.of_threads.remove(thread);
        for run in &ids {
            self.rows.remove(run);
            self.unfinished.remove(run);
        }
        ids
    }

    /// Returns all runs, in the order of their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &Run> {
        self.rows.values()
    }

    /// Returns all unfinished runs, in the order of their ids.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &Run> {
        self.rows_of(&self.unfinished)
    }

    /// Returns the unfinished runs of a thread, in the order of their admission.
    pub(super) fn unfinished_of(&self, thread: &ThreadId) -> impl Iterator<Item = &Run> {
        let of_thread = self.of_threads.get(thread);
        self.rows_of(of_thread.into_iter().flat_map(|ids| &ids.unfinished))
    }

    /// Reports whether a thread has an unfinished run.
    pub(super) fn has_unfinished(&self, thread: &ThreadId) -> bool {
        self.unfinished_of(thread).next().is_some()
    }

    /// Returns the runs of a thread.
    pub(super) fn of_thread(&self, thread: &ThreadId) -> impl Iterator<Item = &Run> {
        let of_thread = self.of_threads.get(thread).into_iter();
        self.rows_of(of_thread.flat_map(|ids| ids.ended.iter().chain(&ids.unfinished)))
    }

    /// Returns the ids of a thread's runs, for changes of the rows.
    pub(super) fn ids_of_thread(&self, thread: &ThreadId) -> Vec<RunId> {
        let runs = self.of_thread(thread);
        runs.map(|run| run.record.run_id.clone()).collect()
    }

    fn rows_of<'a>(
        &'a self,
        ids: impl IntoIterator<Item = &'a RunId>,
    ) -> impl Iterator<Item = &'a Run> {
        ids.into_iter().filter_map(|id| self.rows.get(id))
    }
}
