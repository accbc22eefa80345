//! Coalesces concurrent status reads of a run.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::definition::{RunRecord, StoreError};
use crate::ports::{RunQueryStore, RuntimePorts};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::RunId;
use deerflow_core::tasks::{TaskKind, Tasks};

/// Status pollers by run.
#[derive(Debug, Default)]
pub(crate) struct StatusPollers(Mutex<PollerMap>);

#[derive(Debug, Default)]
struct PollerMap {
    pollers: HashMap<RunId, Weak<StatusPoller>>,
    /// Size of the map at which unused entries are removed.
    tidied_at: usize,
}

/// Minimum size of the map for a removal of unused entries.
const TIDY_THRESHOLD: usize = 64;

impl StatusPollers {
    /// Returns the shared poller of a run.
    pub(crate) fn for_run(&self, run_id: &RunId, ports: &RuntimePorts) -> Arc<StatusPoller> {
        let mut map = self.0.lock();
        if let Some(poller) = map.pollers.get(run_id).and_then(Weak::upgrade) {
            return poller;
        }
        if map.pollers.len() >= map.tidied_at.max(TIDY_THRESHOLD) {
            map.pollers.retain(|_, poller| poller.strong_count() > 0);
            map.tidied_at = 2 * map.pollers.len();
        }
        let (query, tasks) = (ports.query.clone(), ports.tasks.clone());
        let poller = Arc::new(StatusPoller {
            run_id: run_id.clone(),
            query,
            tasks,
            last_poll: Mutex::default(),
        });
        map.pollers.insert(run_id.clone(), Arc::downgrade(&poller));
        poller
    }
}

/// Result of a status read. `None` if the run does not exist.
pub(crate) type StatusResult = Result<Option<Arc<RunRecord>>, StoreError>;

/// Result of a read in flight or completed, with the time of its completion.
type PendingStatus = watch::Receiver<Option<(Instant, StatusResult)>>;

/// Shared reader of one run's record.
#[derive(Debug)]
pub(crate) struct StatusPoller {
    run_id: RunId,
    query: Arc<dyn RunQueryStore>,
    tasks: Tasks,
    last_poll: Mutex<Option<PendingStatus>>,
}

impl StatusPoller {
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Returns the run's record, read at most `age` ago. The record of an ended run does not
    /// expire.
    pub(crate) async fn cached_within(&self, age: Duration) -> StatusResult {
        let mut status = self.poll_within(age);
        match status.wait_for(Option::is_some).await.as_deref() {
            Ok(Some((_, record))) => record.clone(),
            _ => Err(StoreError::Unavailable(
                "the status read was aborted".to_owned(),
            )),
        }
    }

    fn poll_within(&self, age: Duration) -> PendingStatus {
        let mut last_poll = self.last_poll.lock();
        let serves = |status: &&PendingStatus| match &*status.borrow() {
            Some((_, Ok(Some(run)))) if run.status.is_terminal() => true,
            Some((since, _)) => since.elapsed() < age,
            // In flight, unless its task was dropped.
            None => status.has_changed().is_ok(),
        };
        if let Some(status) = last_poll.as_ref().filter(serves) {
            return status.clone();
        }
        let (sender, status) = watch::channel(None);
        let (query, run_id) = (self.query.clone(), self.run_id.clone());
        // The read runs in its own task, because the caller may stop polling, for example a
        // subscriber that does not read.
        self.tasks
            .spawn(TaskKind::Finish, "status read", async move {
                let record = query
                    .get(&run_id, &Owner::None)
                    .await
                    .map(|run| run.map(Arc::new));
                sender.send_replace(Some((Instant::now(), record)));
            });
        *last_poll = Some(status.clone());
        status
    }
}
