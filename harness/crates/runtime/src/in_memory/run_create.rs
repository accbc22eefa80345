//! Admission, claims and cancel requests of runs.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::run_table::Run;
use super::tables::{InMemoryStores, Tables};
use crate::admission::{AdmissionDecision, UserRuns, decide_admission};
use crate::definition::{
    CancelAction, IfNotExists, RunCompletionData, RunRecord, RunStatus, StoreError, ThreadStatus,
    UserRunLimits,
};
use crate::ports::{AdmitError, Admitted, Claimed, CreatedResource, NewRun, RunCreateStore};
use deerflow_core::ids::{NodeId, RunId, ThreadId};

#[async_trait]
impl RunCreateStore for InMemoryStores {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let request = run.request();
        if let Some(state) = request
            .idempotency_key()
            .and_then(|key| tables.key_state(key, run.at))
        {
            return Err(AdmitError::KnownRequest(state));
        }
        if tables.runs.get(&run.run_id).is_some() {
            return Err(AdmitError::RunExists(run.run_id));
        }
        match tables.threads.get(&run.thread_id) {
            Some(thread) if thread.user_id != run.user_id => {
                return Err(AdmitError::ThreadNotFound(run.thread_id));
            }
            None if request.scope.if_not_exists() == IfNotExists::Reject => {
                return Err(AdmitError::ThreadNotFound(run.thread_id));
            }
            _ => {}
        }
        // A run admitted under a fast clock must not sort after one that was admitted later.
        let start_time = |other: &Run| {
            other
                .earliest_start
                .unwrap_or_else(|| other.record.created_at.min(run.created_at))
        };
        let mut others: Vec<_> = tables
            .runs
            .unfinished_of(&run.thread_id)
            .map(|other| RunRecord {
                created_at: start_time(other),
                ..other.record.clone()
            })
            .collect();
        others.sort_by_key(|other| other.created_at);
        let user_runs = tables.user_runs(run.user_id.as_deref());
        let (status, stop) = match decide_admission(&run, &others, user_runs) {
            AdmissionDecision::Take(stop) => (RunStatus::Starting, stop),
            AdmissionDecision::Wait(stop) => (RunStatus::Pending, stop),
            AdmissionDecision::Refuse(active) => {
                return Err(AdmitError::ThreadBusy {
                    active,
                    thread_id: run.thread_id,
                });
            }
            AdmissionDecision::Full => return Err(AdmitError::QueueFull(run.thread_id)),
            AdmissionDecision::QuotaExceeded(exceeded) => return Err(exceeded.into()),
        };
        let displaced = stop
            .map(|action| tables.request_cancel_all(&run.thread_id, action, run.at))
            .unwrap_or_default();
        if let Some(key) = request.idempotency_key().cloned() {
            tables.record_key(
                key,
                CreatedResource::Run(run.thread_id.clone(), run.run_id.clone()),
            );
        }
        let is_new_thread = !tables.threads.contains_key(&run.thread_id);
        let thread = tables.threads.entry(run.thread_id.clone()).or_default();
        thread.user_id.clone_from(&run.user_id);
        thread.temporary |= is_new_thread && request.scope.is_temporary();
        thread.status = ThreadStatus::Busy;
        let record = RunRecord {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            assistant: request.assistant.clone(),
            user_id: run.user_id.clone(),
            status,
            attempt: 1,
            metadata: request.metadata.clone(),
            kwargs: request.presentation.request_echo.clone(),
            multitask: request.multitask,
            model_name: request.model_name().map(str::to_owned),
            webhook: request.webhook.clone(),
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
        let earliest_start = (run.created_at > run.at).then_some(run.created_at);
        let row = Run {
            record: record.clone(),
            order,
            earliest_start,
            started: None,
            last_batch: 0,
            recipe: Some(run.recipe),
            owner,
            losses: 0,
            calls: HashMap::new(),
        };
        tables.runs.insert(row);
        let is_started = record.status.is_owned();
        Ok(Admitted {
            head: is_started.then(|| tables.threads[&record.thread_id].head()),
            run: record,
            displaced,
        })
    }

    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
        limits: UserRunLimits,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut tables = self.0.lock();
        let blocks_thread = |other: &RunRecord| {
            other.status.is_owned() || (other.was_released() && other.cancel.is_some())
        };
        let thread_is_free = |run: &RunRecord| {
            let mut others = tables.runs.unfinished_of(&run.thread_id);
            !others.any(|other| blocks_thread(&other.record))
        };
        let may_start_now = |run: &Run| {
            run.record.was_released() || run.earliest_start.is_none_or(|start| start <= now)
        };
        let user_may_start = |run: &RunRecord| {
            let active = || tables.user_runs(run.user_id.as_deref()).active;
            run.was_released() || limits.max_active.is_none_or(|max| active() < max)
        };
        let is_startable = |run: &&Run| {
            run.is_claimable()
                && may_start_now(run)
                && thread_is_free(&run.record)
                && user_may_start(&run.record)
        };
        let next = tables
            .runs
            .unfinished()
            .filter(is_startable)
            .min_by_key(|run| (!run.record.was_released(), run.order))
            .map(|run| run.record.run_id.clone());
        let Some(next) = next else { return Ok(None) };
        Ok(tables
            .runs
            .get_mut(&next)
            .map(|run| run.assign_to(node, now)))
    }

    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let nodes = tables.live_nodes();
        let is_orphaned = |run: &&Run| {
            run.record.status.is_owned()
                && run
                    .owner
                    .as_ref()
                    .is_none_or(|owner| !nodes.contains(owner))
        };
        let oldest = tables
            .runs
            .unfinished()
            .filter(is_orphaned)
            .min_by_key(|run| (run.record.created_at, run.order))
            .map(|run| run.record.run_id.clone());
        Ok(oldest.and_then(|run| tables.runs.get_mut(&run)).map(|run| {
            run.record.attempt += 1;
            run.last_batch = 0;
            run.losses += 1;
            run.assign_to(node, now)
        }))
    }

    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError> {
        Ok(self
            .0
            .lock()
            .runs
            .unfinished()
            .filter(|run| run.is_claimable())
            .filter_map(|run| run.earliest_start)
            .filter(|start| *start > now)
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

impl Run {
    /// Reports whether the run is queued without a cancel request.
    fn is_claimable(&self) -> bool {
        self.record.status == RunStatus::Pending && self.record.cancel.is_none()
    }

    fn assign_to(&mut self, node: &NodeId, now: DateTime<Utc>) -> Claimed {
        self.record.status = RunStatus::Starting;
        self.record.updated_at = now;
        self.owner = Some(node.clone());
        let recipe = self
            .recipe
            .as_deref()
            .cloned()
            .ok_or_else(|| "no stored run request".to_owned());
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
    /// Counts the unfinished runs of a user; none without a user.
    fn user_runs(&self, user: Option<&str>) -> UserRuns {
        let mut count = UserRuns::default();
        if user.is_none() {
            return count;
        }
        let is_of_user = |run: &&Run| run.record.user_id.as_deref() == user;
        for run in self.runs.unfinished().filter(is_of_user) {
            count.active += u64::from(run.record.status.is_owned());
            count.queued += u64::from(run.is_claimable());
        }
        count
    }

    /// Requests cancellation of all unfinished runs of a thread that are not cancelled yet.
    fn request_cancel_all(
        &mut self,
        thread: &ThreadId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Vec<RunRecord> {
        let running = self.runs.unfinished_of(thread).map(|run| &run.record);
        let running: Vec<RunId> = running
            .filter(|run| run.cancel.is_none())
            .map(|run| run.run_id.clone())
            .collect();
        let mut cancelled = Vec::new();
        for id in running {
            if let Some(Run { record, .. }) = self.runs.get_mut(&id) {
                record.cancel = Some(action);
                record.updated_at = at;
                cancelled.push(record.clone());
            }
        }
        cancelled
    }
}
