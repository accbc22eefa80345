//! Handles of the runs that wait or are executed in this process. They decide nothing: the truth is in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::spec::CancelAction;
use super::status::RunStatus;
use crate::ids::RunId;
use crate::runtime::serialization::values_json;
use crate::state::ThreadState;

/// How a run ended, for those who wait in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// A terminal status.
    pub status: RunStatus,
    /// The error's class and text, when it failed.
    pub error: Option<(String, String)>,
    /// The last state.
    pub values: Option<RunValues>,
}

/// The last state of a run and the questions that stay open. It becomes JSON only when somebody waits for it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunValues {
    pub(super) state: Arc<ThreadState>,
    pub(super) questions: Vec<Value>,
}

impl RunValues {
    /// The state as JSON, with open questions under `__interrupt__`.
    pub fn json(&self) -> Bytes {
        values_json(&self.state, &self.questions)
    }
}

/// A run that waits or is being executed here.
#[derive(Debug)]
pub(super) struct LiveRun {
    /// Cancelled to stop the run.
    pub(super) token: CancellationToken,
    /// Cancelled, in the sense of set, once the first event is published.
    pub(super) opened: CancellationToken,
    waits: AtomicBool,
    stop: Mutex<Option<Stop>>,
    status: Mutex<RunStatus>,
    left: Mutex<Option<Left>>,
    /// Cancelled, in the sense of set, once it has left.
    gone: CancellationToken,
}

/// Why a run that is executed here has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody cancelled it.
    Cancel(CancelAction),
    /// This process ends: another one goes on with the run.
    HandOver,
    /// This process may not own it any more.
    Fence,
}

/// What became of a run in this process.
#[derive(Debug, Clone)]
enum Left {
    Ended(RunOutcome),
    /// It goes on elsewhere, or later.
    Elsewhere,
}

impl LiveRun {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            token: CancellationToken::new(),
            opened: CancellationToken::new(),
            waits: AtomicBool::new(false),
            stop: Mutex::new(None),
            status: Mutex::new(RunStatus::Pending),
            left: Mutex::new(None),
            gone: CancellationToken::new(),
        })
    }

    /// The run is admitted and waits for its turn or its time.
    pub(super) fn set_waiting(&self, waits: bool) {
        self.waits.store(waits, Ordering::Release);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waits.load(Ordering::Acquire) && self.status() == RunStatus::Pending
    }

    /// Has the run stop; the first reason stands.
    pub(super) fn stop(&self, reason: Stop) {
        self.stop.lock().get_or_insert(reason);
        self.token.cancel();
    }

    pub(super) fn stop_reason(&self) -> Stop {
        self.stop
            .lock()
            .unwrap_or(Stop::Cancel(CancelAction::Interrupt))
    }

    pub(super) fn status(&self) -> RunStatus {
        *self.status.lock()
    }

    pub(super) fn set_status(&self, status: RunStatus) {
        *self.status.lock() = status;
    }

    /// Called once, when everything about the run is durable and published.
    pub(super) fn finished(&self, outcome: RunOutcome) {
        self.leave(Left::Ended(outcome));
    }

    /// Called once instead of [`LiveRun::finished`] when the run goes on without this handle.
    pub(super) fn left(&self) {
        self.leave(Left::Elsewhere);
    }

    fn leave(&self, left: Left) {
        *self.left.lock() = Some(left);
        self.opened.cancel();
        self.gone.cancel();
    }

    /// Waits until the run is over, or is no longer this process's: then the store knows more.
    pub(super) async fn ended(&self) -> Option<RunOutcome> {
        self.gone.cancelled().await;
        match &*self.left.lock() {
            Some(Left::Ended(outcome)) => Some(outcome.clone()),
            Some(Left::Elsewhere) | None => None,
        }
    }
}

/// The live runs by id.
#[derive(Debug, Default)]
pub(super) struct LiveRuns(Mutex<BTreeMap<RunId, Arc<LiveRun>>>);

impl LiveRuns {
    /// `false`, and nothing is changed, when the run is known already.
    pub(super) fn insert_new(&self, run_id: &RunId, live: &Arc<LiveRun>) -> bool {
        let mut known = self.0.lock();
        !known.contains_key(run_id) && known.insert(run_id.clone(), live.clone()).is_none()
    }

    pub(super) fn get(&self, run_id: &RunId) -> Option<Arc<LiveRun>> {
        self.0.lock().get(run_id).cloned()
    }

    pub(super) fn get_or_insert(&self, run_id: &RunId) -> Arc<LiveRun> {
        self.0
            .lock()
            .entry(run_id.clone())
            .or_insert_with(LiveRun::new)
            .clone()
    }

    pub(super) fn remove(&self, run_id: &RunId) {
        self.0.lock().remove(run_id);
    }

    /// Removes this handle; one of a later attempt stays.
    pub(super) fn remove_exactly(&self, run_id: &RunId, live: &Arc<LiveRun>) {
        let mut known = self.0.lock();
        if known
            .get(run_id)
            .is_some_and(|held| Arc::ptr_eq(held, live))
        {
            known.remove(run_id);
        }
    }

    /// The handle for an attempt that begins: the one that waited for it, or a new one in place of a former attempt's.
    pub(super) fn for_attempt(&self, run_id: &RunId) -> Arc<LiveRun> {
        let mut known = self.0.lock();
        if let Some(held) = known.get(run_id) {
            if held.status() == RunStatus::Pending && held.stop.lock().is_none() {
                return held.clone();
            }
            held.stop(Stop::Fence);
        }
        let live = LiveRun::new();
        known.insert(run_id.clone(), live.clone());
        live
    }

    /// Those that are executed here, not those that wait.
    pub(super) fn executed(&self) -> Vec<(RunId, Arc<LiveRun>)> {
        let known = self.0.lock();
        known
            .iter()
            .filter(|(_, live)| live.status() != RunStatus::Pending)
            .map(|(id, live)| (id.clone(), live.clone()))
            .collect()
    }

    /// Those that wait for their turn or their time.
    pub(super) fn waiting(&self) -> Vec<(RunId, Arc<LiveRun>)> {
        let known = self.0.lock();
        known
            .iter()
            .filter(|(_, live)| live.is_waiting())
            .map(|(id, live)| (id.clone(), live.clone()))
            .collect()
    }

    /// Whether any waits here for its turn or its time.
    pub(super) fn any_waiting(&self) -> bool {
        self.0.lock().values().any(|live| live.is_waiting())
    }
}
