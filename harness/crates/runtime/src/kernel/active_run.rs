//! Handles of the runs that are queued or executed in this process. The store is authoritative, not
//! the handle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::definition::{CancelAction, RunStatus};
use crate::encoding::values_data;
use crate::stream_bridge::EventData;
use deerflow_core::ids::RunId;
use deerflow_core::permit_waits::ObservedWait;
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
    pub fn json(&self) -> EventData {
        values_data(&self.state, &self.interrupts)
    }
}

/// Handle of a run that is queued or executed in this process.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    /// Cancelled to stop the run.
    pub(crate) token: CancellationToken,
    /// Cancelled when the first event is published.
    pub(crate) opened: CancellationToken,
    /// Permit for which the run waits.
    pub(crate) wait: ObservedWait,
    stop: Mutex<Option<StopSignal>>,
    stage: Mutex<Stage>,
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

/// Stage of a run in this process.
#[derive(Debug)]
enum Stage {
    /// The run has a handle, and its admission is not complete.
    Admitted,
    /// Queued: admitted, but not started.
    Queued(#[expect(dead_code, reason = "counts the run while it exists")] QueuedMark),
    /// Claimed or executed, with this status.
    Executed(RunStatus),
    /// The handle was removed. The status is that of the run at that time.
    Departed(RunStatus, Departure),
}

impl Stage {
    fn status(&self) -> RunStatus {
        match self {
            Self::Admitted | Self::Queued(_) => RunStatus::Pending,
            Self::Executed(status) | Self::Departed(status, _) => *status,
        }
    }

    /// Queues a run that was not started meanwhile.
    fn queued(self, mark: QueuedMark) -> Self {
        match self {
            Self::Admitted => Self::Queued(mark),
            other => other,
        }
    }

    fn executed(self, status: RunStatus) -> Self {
        match self {
            Self::Departed(_, departure) => Self::Departed(status, departure),
            Self::Admitted | Self::Queued(_) | Self::Executed(_) => Self::Executed(status),
        }
    }

    fn departed(self, departure: Departure) -> Self {
        Self::Departed(self.status(), departure)
    }
}

/// Mark of a queued run, which is counted while the mark exists.
#[derive(Debug)]
struct QueuedMark(Arc<AtomicUsize>);

impl QueuedMark {
    fn counted_by(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for QueuedMark {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
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
            wait: ObservedWait::default(),
            stop: Mutex::new(None),
            stage: Mutex::new(Stage::Admitted),
            departed: CancellationToken::new(),
        })
    }

    /// Applies a transition to the stage.
    fn change(&self, transition: impl FnOnce(Stage) -> Stage) {
        let mut stage = self.stage.lock();
        *stage = transition(std::mem::replace(&mut *stage, Stage::Admitted));
    }

    /// Reports whether the run is queued.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Queued(_))
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
        self.stage.lock().status()
    }

    /// Sets the status of a run that was claimed.
    pub(crate) fn set_status(&self, status: RunStatus) {
        self.change(|stage| stage.executed(status));
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
        self.change(|stage| stage.departed(departure));
        self.opened.cancel();
        self.departed.cancel();
    }

    /// Waits until the run has ended or was detached. Returns `None` if it was detached; the caller
    /// then reads the store.
    pub(crate) async fn ended(&self) -> Option<RunOutcome> {
        self.departed.cancelled().await;
        match &*self.stage.lock() {
            Stage::Departed(_, Departure::Ended(outcome)) => Some(outcome.clone()),
            _ => None,
        }
    }
}

/// Handles of active runs by id.
#[derive(Debug, Default)]
pub(crate) struct ActiveRuns {
    handles: Mutex<BTreeMap<RunId, Arc<ActiveRun>>>,
    /// Number of queued runs. Each end of a run asks for it, so the handles are not searched.
    queued: Arc<AtomicUsize>,
}

impl ActiveRuns {
    /// Adds a handle. Returns `false`, without a change, if the run already has one.
    pub(crate) fn insert_new(&self, run_id: &RunId, active: &Arc<ActiveRun>) -> bool {
        let mut handles = self.handles.lock();
        !handles.contains_key(run_id) && handles.insert(run_id.clone(), active.clone()).is_none()
    }

    pub(crate) fn get(&self, run_id: &RunId) -> Option<Arc<ActiveRun>> {
        self.handles.lock().get(run_id).cloned()
    }

    pub(crate) fn get_or_insert(&self, run_id: &RunId) -> Arc<ActiveRun> {
        self.handles
            .lock()
            .entry(run_id.clone())
            .or_insert_with(ActiveRun::new)
            .clone()
    }

    pub(crate) fn remove(&self, run_id: &RunId) {
        self.handles.lock().remove(run_id);
    }

    /// Marks a run as queued, unless it was started meanwhile.
    pub(crate) fn enqueue(&self, active: &ActiveRun) {
        active.change(|stage| stage.queued(QueuedMark::counted_by(&self.queued)));
    }

    /// Removes this handle, but not that of a later attempt.
    pub(crate) fn remove_exactly(&self, run_id: &RunId, active: &Arc<ActiveRun>) {
        let mut handles = self.handles.lock();
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
        let mut handles = self.handles.lock();
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
        let handles = self.handles.lock();
        handles
            .iter()
            .filter(|(_, active)| active.status() != RunStatus::Pending)
            .map(|(id, active)| (id.clone(), active.clone()))
            .collect()
    }

    /// Returns the queued runs.
    pub(crate) fn waiting(&self) -> Vec<(RunId, Arc<ActiveRun>)> {
        let handles = self.handles.lock();
        handles
            .iter()
            .filter(|(_, active)| active.is_waiting())
            .map(|(id, active)| (id.clone(), active.clone()))
            .collect()
    }

    /// Reports whether any run is queued here.
    pub(crate) fn any_waiting(&self) -> bool {
        self.queued.load(Ordering::SeqCst) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_run_is_not_queued_again() {
        let (runs, active) = (ActiveRuns::default(), ActiveRun::new());
        runs.enqueue(&active);
        assert!(active.is_waiting() && runs.any_waiting());
        active.set_status(RunStatus::Starting);
        assert!(!runs.any_waiting());
        runs.enqueue(&active);
        assert_eq!(
            (active.is_waiting(), active.status()),
            (false, RunStatus::Starting)
        );
        assert!(!runs.any_waiting());
    }

    #[test]
    fn removed_handle_of_queued_run_is_not_counted() {
        let runs = ActiveRuns::default();
        let id = RunId::parse("r1").unwrap();
        runs.enqueue(&runs.get_or_insert(&id));
        assert!(runs.any_waiting());
        runs.remove(&id);
        assert!(!runs.any_waiting());
    }

    #[tokio::test]
    async fn departed_run_keeps_status_and_outcome() {
        let active = ActiveRun::new();
        active.set_status(RunStatus::Success);
        let outcome = RunOutcome {
            status: RunStatus::Success,
            error: None,
            values: None,
        };
        active.finished(outcome.clone());
        ActiveRuns::default().enqueue(&active);
        assert_eq!(active.ended().await, Some(outcome));
        assert_eq!(active.status(), RunStatus::Success);
    }
}
