//! Admission, commits, reading and deleting of runs.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::{Call, MemoryStores, Run, StoredCheckpoint, Tables, Thread};
use crate::ids::{CheckpointId, NodeId, RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::{CheckpointWrite, expand};
use crate::runtime::runs::store::{
    AdmitError, Admitted, Claimed, CommitError, Made, NewRun, RunCommit, RunCommitStore,
    RunCreateStore, RunDeleteStore, RunListQuery, RunQueryStore, RunStanding, StoreError,
    WebhookDelivery,
};
use crate::runtime::runs::{
    CancelAction, IfNotExists, RunCompletionData, RunRecord, RunStatus, ThreadStatus, Verdict,
    verdict,
};

#[async_trait]
impl RunCreateStore for MemoryStores {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        if let Some(known) = run
            .request
            .as_ref()
            .and_then(|key| tables.known(key, run.at))
        {
            return Err(AdmitError::KnownRequest(known));
        }
        if tables.runs.contains_key(&run.run_id) {
            return Err(AdmitError::RunExists(run.run_id));
        }
        match tables.threads.get(&run.thread_id) {
            Some(thread) if thread.user_id != run.user_id => {
                return Err(AdmitError::ThreadNotFound(run.thread_id));
            }
            None if run.if_not_exists == IfNotExists::Reject => {
                return Err(AdmitError::ThreadNotFound(run.thread_id));
            }
            _ => {}
        }
        let others = tables.runs.values().filter(|other| {
            !other.record.status.is_terminal() && other.record.thread_id == run.thread_id
        });
        // A clock that is ahead makes no run later than one that was admitted after it.
        let begins = |other: &Run| {
            other
                .due
                .unwrap_or_else(|| other.record.created_at.min(run.created_at))
        };
        let mut others: Vec<_> = others
            .map(|other| RunRecord {
                created_at: begins(other),
                ..other.record.clone()
            })
            .collect();
        others.sort_by_key(|other| other.created_at);
        let (status, stop) = match verdict(&run, &others) {
            Verdict::Take(stop) => (RunStatus::Starting, stop),
            Verdict::Wait(stop) => (RunStatus::Pending, stop),
            Verdict::Refuse(active) => {
                return Err(AdmitError::ThreadBusy {
                    active,
                    thread_id: run.thread_id,
                });
            }
            Verdict::Full => return Err(AdmitError::QueueFull(run.thread_id)),
        };
        let displaced = stop
            .map(|action| tables.stop(&run.thread_id, action, run.at))
            .unwrap_or_default();
        if let Some(key) = run.request {
            tables.keep(key, Made::Run(run.thread_id.clone(), run.run_id.clone()));
        }
        let made = !tables.threads.contains_key(&run.thread_id);
        let thread = tables.threads.entry(run.thread_id.clone()).or_default();
        thread.user_id.clone_from(&run.user_id);
        thread.temporary |= made && run.temporary_thread;
        thread.status = ThreadStatus::Busy;
        let record = RunRecord {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id,
            assistant: run.assistant,
            user_id: run.user_id,
            status,
            attempt: 1,
            metadata: run.metadata,
            kwargs: run.kwargs,
            multitask: run.multitask,
            model_name: run.model_name,
            webhook: run.webhook,
            cancel: None,
            error: None,
            error_name: None,
            stop_reason: None,
            completion: RunCompletionData::default(),
            created_at: run.created_at,
            updated_at: run.at,
        };
        tables.admitted += 1;
        let order = tables.admitted;
        let owner = status.is_owned().then_some(run.owner);
        let due = (run.created_at > run.at).then_some(run.created_at);
        let row = Run {
            record: record.clone(),
            order,
            due,
            started: None,
            last_batch: 0,
            recipe: Some(run.recipe),
            owner,
            losses: 0,
            calls: HashMap::new(),
        };
        tables.runs.insert(run.run_id, row);
        Ok(Admitted {
            run: record,
            displaced,
        })
    }

    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut tables = self.0.lock();
        let held = |other: &RunRecord| {
            other.status.is_owned() || (other.was_given_back() && other.cancel.is_some())
        };
        let free = |run: &RunRecord| {
            tables
                .unfinished(|other| other.thread_id == run.thread_id && held(other))
                .is_empty()
        };
        let due = |run: &Run| run.record.was_given_back() || run.due.is_none_or(|due| due <= now);
        let may_begin = |run: &&Run| run.waits() && due(run) && free(&run.record);
        let next = tables
            .runs
            .values()
            .filter(may_begin)
            .min_by_key(|run| (!run.record.was_given_back(), run.order))
            .map(|run| run.record.run_id.clone());
        let Some(next) = next else { return Ok(None) };
        Ok(tables
            .runs
            .get_mut(&next)
            .map(|run| run.given_to(node, now)))
    }

    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let nodes = tables.alive();
        let left = |run: &&mut Run| {
            run.record.status.is_owned()
                && run
                    .owner
                    .as_ref()
                    .is_none_or(|owner| !nodes.contains(owner))
        };
        let oldest = tables
            .runs
            .values_mut()
            .filter(left)
            .min_by_key(|run| (run.record.created_at, run.order));
        Ok(oldest.map(|run| {
            run.record.attempt += 1;
            run.last_batch = 0;
            run.losses += 1;
            run.given_to(node, now)
        }))
    }

    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError> {
        Ok(self
            .0
            .lock()
            .runs
            .values()
            .filter(|run| run.waits())
            .filter_map(|run| run.due)
            .filter(|due| *due > now)
            .min())
    }

    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError> {
        let mut tables = self.0.lock();
        Ok(tables.runs.get_mut(run).map(|run| {
            if !run.record.status.is_terminal() && run.record.cancel.is_none() {
                run.record.cancel = Some(action);
                run.record.updated_at = at;
            }
            run.record.clone()
        }))
    }
}

#[async_trait]
impl RunCommitStore for MemoryStores {
    async fn commit(&self, mut commit: RunCommit) -> Result<(), CommitError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let run = tables
            .runs
            .get_mut(&commit.run_id)
            .ok_or_else(|| CommitError::Gone(commit.run_id.clone()))?;
        let owned = run.record.attempt == commit.attempt;
        if owned && (1..=run.last_batch).contains(&commit.batch) {
            return Ok(());
        }
        if run.record.status.is_terminal() {
            return Err(CommitError::AlreadyTerminal(commit.run_id));
        }
        if !owned {
            return Err(CommitError::OwnershipLost {
                run_id: commit.run_id,
                attempt: commit.attempt,
            });
        }
        let illegal =
            |error: crate::runtime::runs::InvalidTransition| StoreError::Failed(error.to_string());
        if let Some(end) = commit.end.as_ref().filter(|end| !end.status.is_terminal()) {
            return Err(StoreError::Failed(format!("a run cannot end in {}", end.status)).into());
        }
        let mut status = run.record.status;
        for next in commit
            .advance
            .into_iter()
            .chain(commit.end.as_ref().map(|end| end.status))
        {
            status = status.advance(next).map_err(illegal)?;
        }
        let thread = tables.threads.entry(commit.thread_id.clone()).or_default();
        if commit
            .end
            .as_ref()
            .is_some_and(|end| end.discard_checkpoints)
        {
            commit.checkpoints.clear();
        }
        thread
            .refuse_misfits(&commit.checkpoints)
            .map_err(StoreError::Failed)?;
        run.last_batch = run.last_batch.max(commit.batch);
        run.record.status = status;
        run.record.updated_at = commit.at;
        if commit.advance == Some(RunStatus::Running) {
            run.started.get_or_insert(commit.at);
        }
        if let Some(so_far) = commit.so_far {
            run.record.completion = *so_far;
        }
        if status == RunStatus::Pending && commit.advance.is_some() {
            // Given back: who had it must not write any more.
            run.record.attempt += 1;
            run.last_batch = 0;
            run.owner = None;
        }
        run.calls.extend(
            commit
                .calls
                .into_iter()
                .map(|call| (call.key, call.progress)),
        );
        thread.append(commit.events);
        for write in commit.checkpoints {
            thread.keep(write);
        }
        let Some(end) = commit.end else { return Ok(()) };
        (run.recipe, run.owner) = (None, None);
        if end.forget_calls {
            run.calls.clear();
        }
        run.record.error = end.error;
        run.record.error_name = end.error_name;
        run.record.stop_reason = end.stop_reason;
        run.record.completion = end.completion;
        thread.status = end.thread_status;
        thread.title = end.title.or(thread.title.take());
        if end.discard_checkpoints {
            thread
                .checkpoints
                .retain(|checkpoint| checkpoint.meta.run_id.as_ref() != Some(&commit.run_id));
            thread.status = ThreadStatus::at_rest(
                thread
                    .newest()
                    .is_some_and(|newest| !newest.meta.next.is_empty()),
            );
        }
        let ended = run.record.clone();
        if let Some(call) = end.webhook {
            let delivery = WebhookDelivery {
                run: ended,
                call,
                ended_at: commit.at,
                tries: 0,
            };
            tables.outbox.insert(
                commit.run_id.clone(),
                Call {
                    delivery,
                    due: Some(commit.at),
                    died: None,
                    last_error: None,
                },
            );
        }
        let temporary = thread.temporary;
        if let (Some(values), Some(request)) = (end.kept_values, tables.request_of(&commit.run_id))
        {
            request.values = Some(values);
        }
        if !tables
            .unfinished(|other| other.thread_id == commit.thread_id)
            .is_empty()
        {
            tables.threads.entry(commit.thread_id).or_default().status = ThreadStatus::Busy;
        } else if temporary {
            tables.threads.remove(&commit.thread_id);
            for run in tables
                .runs
                .values_mut()
                .filter(|run| run.record.thread_id == commit.thread_id)
            {
                run.record.kwargs = serde_json::json!({});
                run.record.completion = std::mem::take(&mut run.record.completion).without_text();
            }
        }
        Ok(())
    }
}

#[async_trait]
impl RunQueryStore for MemoryStores {
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
        let mut found: Vec<&Run> = tables
            .runs
            .values()
            .filter(|run| run.record.thread_id == *thread && owns(&owner, &run.record))
            .filter(|run| {
                query
                    .status
                    .is_none_or(|status| run.record.status.wire() == status.wire())
            })
            .collect();
        found.sort_by_key(|run| std::cmp::Reverse((run.record.created_at, run.order)));
        Ok(found
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

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<RunStanding>, StoreError> {
        let owner = owner.resolve()?;
        let meant = |run: &RunRecord| {
            owns(&owner, run) && thread.is_none_or(|thread| run.thread_id == *thread)
        };
        let found = self.0.lock().unfinished(meant);
        let standing = |run: RunRecord| RunStanding {
            told_to_stop: run.cancel.is_some(),
            run_id: run.run_id,
            thread_id: run.thread_id,
            status: run.status,
            created_at: run.created_at,
        };
        Ok(found.into_iter().map(standing).collect())
    }
}

#[async_trait]
impl RunDeleteStore for MemoryStores {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let finished = tables
            .runs
            .get(run)
            .is_some_and(|run| run.record.status.is_terminal());
        let Some(gone) = finished.then(|| tables.runs.remove(run)).flatten() else {
            return Ok(false);
        };
        tables.streams.remove(run);
        tables.forget_values(run);
        if let Some(thread) = tables.threads.get_mut(&gone.record.thread_id) {
            thread.events.retain(|event| event.event.run_id != *run);
            thread
                .checkpoints
                .retain(|checkpoint| checkpoint.meta.run_id.as_ref() != Some(run));
        }
        Ok(true)
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let gone = tables
            .runs
            .values()
            .filter(|run| run.record.thread_id == *thread)
            .map(|run| run.record.run_id.clone());
        for run in gone.collect::<Vec<_>>() {
            tables.runs.remove(&run);
            tables.forget_values(&run);
        }
        tables
            .streams
            .retain(|run, _| tables.runs.contains_key(run));
        if let Some(thread) = tables.threads.get_mut(thread) {
            thread.events.clear();
        }
        Ok(())
    }
}

/// A row without an owner belongs to nobody but maintenance.
fn owns(owner: &Option<String>, record: &RunRecord) -> bool {
    owner.is_none() || record.user_id == *owner
}

impl Run {
    /// Whether it waits and was not told to stop.
    fn waits(&self) -> bool {
        self.record.status == RunStatus::Pending && self.record.cancel.is_none()
    }

    fn given_to(&mut self, node: &NodeId, now: DateTime<Utc>) -> Claimed {
        self.record.status = RunStatus::Starting;
        self.record.updated_at = now;
        self.owner = Some(node.clone());
        let recipe = self
            .recipe
            .as_deref()
            .cloned()
            .ok_or_else(|| "nothing was written down".to_owned());
        let worked = self
            .started
            .and_then(|since| (now - since).to_std().ok())
            .unwrap_or_default();
        Claimed {
            run: self.record.clone(),
            losses: self.losses,
            worked,
            recipe,
        }
    }
}

impl Tables {
    pub(super) fn active(&self, thread: &ThreadId) -> Option<RunRecord> {
        self.unfinished(|record| record.thread_id == *thread)
            .into_iter()
            .min_by_key(|record| !record.holds_thread())
    }

    /// Runs that are not over, in the order in which they begin.
    fn unfinished(&self, wanted: impl Fn(&RunRecord) -> bool) -> Vec<RunRecord> {
        let mut found: Vec<&Run> = self
            .runs
            .values()
            .filter(|run| !run.record.status.is_terminal() && wanted(&run.record))
            .collect();
        found.sort_by_key(|run| (run.record.created_at, run.order));
        found.into_iter().map(|run| run.record.clone()).collect()
    }

    /// Tells all unfinished runs of a thread to stop that were not told before.
    fn stop(
        &mut self,
        thread: &ThreadId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Vec<RunRecord> {
        let others = self.runs.values_mut().map(|run| &mut run.record);
        let told = others
            .filter(|run| {
                run.thread_id == *thread && !run.status.is_terminal() && run.cancel.is_none()
            })
            .map(|run| {
                run.cancel = Some(action);
                run.updated_at = at;
                run.clone()
            });
        told.collect()
    }
}

impl Thread {
    /// Ids and places are given once, and what a layout names is there.
    pub(super) fn refuse_misfits(&self, writes: &[CheckpointWrite]) -> Result<(), String> {
        let known = |id: &CheckpointId| {
            self.checkpoints
                .iter()
                .any(|checkpoint| checkpoint.meta.checkpoint_id == *id)
        };
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
                        "checkpoint {} is not there to be amended",
                        write.meta.checkpoint_id
                    ));
                }
                (false, false) => {}
            }
            if let Some((place, _)) = write
                .new_messages
                .iter()
                .find(|(place, _)| self.log.contains_key(place))
            {
                return Err(format!("place {place} of the log is taken"));
            }
            new.extend(write.new_messages.iter().map(|(place, _)| *place));
            if let Some(place) = expand(&write.layout)
                .find(|place| !new.contains(place) && !self.log.contains_key(place))
            {
                return Err(format!(
                    "checkpoint {} needs message {place}, which the log does not have",
                    write.meta.checkpoint_id
                ));
            }
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, write: CheckpointWrite) {
        let held = self
            .checkpoints
            .iter_mut()
            .find(|held| write.amends && held.meta.checkpoint_id == write.meta.checkpoint_id);
        if let Some(held) = held {
            (held.meta.next, held.meta.machine) = (write.meta.next, write.meta.machine);
            return;
        }
        self.log.extend(write.new_messages);
        self.checkpoints.push(StoredCheckpoint {
            meta: write.meta,
            channels: write.channels,
            layout: write.layout,
        });
    }
}
