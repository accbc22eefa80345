//! Handles of the runs that are queued or executed in this process. The store is authoritative, not
//! the handle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::definition::{CancelAction, RunStatus};
use crate::encoding::values_json;
use deerflow_core::ids::RunId;
use deerflow_core::state::ThreadState;

/// End of a run, for callers that wait in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// Terminal status.
    pub status: RunStatus,
    /// Class and text of the error of a failed run.
    pub error: Option<(String, String)>,
    /// State at the end of the run, if it is known.
    pub values: Option<RunValues>,
}

/// State at the end of a run and its open interrupts. It is encoded as JSON only when a caller
/// needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunValues {
    pub(crate) state: Arc<ThreadState>,
    pub(crate) interrupts: Vec<Value>,
}

impl RunValues {
    /// Encodes the state as JSON, with open interrupts under `__interrupt__`.
    pub fn json(&self) -> Bytes {
        values_json(&self.state, &self.interrupts)
    }
}

/// Handle of a run that is queued or executed in this process.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    /// Cancelled to stop the run.
    pub(crate) token: CancellationToken,
    /// Cancelled when the first event is published.
    pub(crate) opened: CancellationToken,
    waiting: AtomicBool,
    stop: Mutex<Option<StopSignal>>,
    status: Mutex<RunStatus>,
    departure: Mutex<Option<Departure>>,
    /// Cancelled when the run has ended or was detached.
    departed: CancellationToken,
}

/// Reason to stop a run that this process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// A cancel was requested.
    Cancel(CancelAction),
    /// This process shuts down; another process resumes the run.
    Release,
    /// This process may no longer own the run.
    Fence,
}

/// Reason why a handle was removed.
#[derive(Debug, Clone)]
enum Departure {
    Ended(RunOutcome),
    /// Detached: another process, or a later attempt, continues the run.
    Elsewhere,
}

impl ActiveRun {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            token: CancellationToken::new(),
            opened: CancellationToken::new(),
            waiting: AtomicBool::new(false),
            stop: Mutex::new(None),
            status: Mutex::new(RunStatus::Pending),
            departure: Mutex::new(None),
            departed: CancellationToken::new(),
        })
    }

    /// Sets whether the run is queued: admitted, but not started.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Release);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) && self.status() == RunStatus::Pending
    }

    /// Requests the run to stop. Only the first reason is used.
    pub(crate) fn stop(&self, reason: StopSignal) {
        self.stop.lock().get_or_insert(reason);
        self.token.cancel();
    }

    pub(crate) fn stop_reason(&self) -> StopSignal {
        self.stop
            .lock()
            .unwrap_or(StopSignal::Cancel(CancelAction::Interrupt))
    }

    pub(crate) fn status(&self) -> RunStatus {
        *self.status.lock()
    }

    pub(crate) fn set_status(&self, status: RunStatus) {
        *self.status.lock() = status;
    }

    /// Reports the end of the run. Called once, after the end is durable and published.
    pub(crate) fn finished(&self, outcome: RunOutcome) {
        self.depart(Departure::Ended(outcome));
    }

    /// Detaches this handle from a run that continues without it. Called once instead of
    /// [`ActiveRun::finished`].
    pub(crate) fn detached(&self) {
        self.depart(Departure::Elsewhere);
    }

    fn depart(&self, departure: Departure) {
        *self.departure.lock() = Some(departure);
        self.opened.cancel();
        self.departed.cancel();
    }

    /// Waits until the run has ended or was detached. Returns `None` if it was detached; the caller
    /// then reads the store.
    pub(crate) async fn ended(&self) -> Option<RunOutcome> {
        self.departed.cancelled().await;
        match &*self.departure.lock() {
            Some(Departure::Ended(outcome)) => Some(outcome.clone()),
            Some(Departure::Elsewhere) | None => None,
        }
    }
}

/// Handles of active runs by id.
#[derive(Debug, Default)]
pub(crate) struct ActiveRuns(Mutex<BTreeMap<RunId, Arc<ActiveRun>>>);

impl ActiveRuns {
    /// Adds a handle. Returns `false`, without a change, if the run already has one.
    pub(crate) fn insert_new(&self, run_id: &RunId, active: &Arc<ActiveRun>) -> bool {
        let mut handles = self.0.lock();
        !handles.contains_key(run_id) && handles.insert(run_id.clone(), active.clone()).is_none()
    }

    pub(crate) fn get(&self, run_id: &RunId) -> Option<Arc<ActiveRun>> {
        self.0.lock().get(run_id).cloned()
    }

    pub(crate) fn get_or_insert(&self, run_id: &RunId) -> Arc<ActiveRun> {
        self.0
            .lock()
            .entry(run_id.clone())
            .or_insert_with(ActiveRun::new)
            .clone()
    }

    pub(crate) fn remove(&self, run_id: &RunId) {
        self.0.lock().remove(run_id);
    }

    /// Removes this handle, but not that of a later attempt.
    pub(crate) fn remove_exactly(&self, run_id: &RunId, active: &Arc<ActiveRun>) {
        let mut handles = self.0.lock();
        if handles
            .get(run_id)
            .is_some_and(|existing| Arc::ptr_eq(existing, active))
        {
            handles.remove(run_id);
        }
    }

    /// Returns the handle for an attempt that starts: the handle of the queued run, or a new one
    /// that replaces and fences the handle of an earlier attempt.
    pub(crate) fn for_attempt(&self, run_id: &RunId) -> Arc<ActiveRun> {
        let mut handles = self.0.lock();
        if let Some(existing) = handles.get(run_id) {
            if existing.status() == RunStatus::Pending && existing.stop.lock().is_none() {
                return existing.clone();
            }
            existing.stop(StopSignal::Fence);
        }
        let active = ActiveRun::new();
        handles.insert(run_id.clone(), active.clone());
        active
    }

    /// Returns the runs that this process executes, without queued ones.
    pub(crate) fn executed(&self) -> Vec<(RunId, Arc<ActiveRun>)> {
        let handles = self.0.lock();
        handles
            .iter()
            .filter(|(_, active)| active.status() != RunStatus::Pending)
            .map(|(id, active)| (id.clone(), active.clone()))
            .collect()
    }

    /// Returns the queued runs.
    pub(crate) fn waiting(&self) -> Vec<(RunId, Arc<ActiveRun>)> {
        let handles = self.0.lock();
        handles
            .iter()
            .filter(|(_, active)| active.is_waiting())
            .map(|(id, active)| (id.clone(), active.clone()))
            .collect()
    }

    /// Reports whether any run is queued here.
    pub(crate) fn any_waiting(&self) -> bool {
        self.0.lock().values().any(|active| active.is_waiting())
    }
}
