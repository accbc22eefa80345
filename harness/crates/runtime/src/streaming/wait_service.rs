//! Waits for the end of a run and returns its final state.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;

use super::resubscribe::subscribe_with_retry;
use crate::checkpoint::{HistoryQuery, Snapshot};
use crate::definition::{LOST_ERROR, RunRecord, RunStatus, StoreError};
use crate::encoding::values_data;
use crate::kernel::{RunError, RunOutcome, Runtime, StatusPoller};
use crate::ports::RuntimePorts;
use crate::stream_bridge::{EventData, ResumeFrom, StreamItem};

/// Poll interval for a run that another process executes.
const REMOTE_POLL: Duration = Duration::from_millis(100);
/// Poll interval while the store is unavailable.
const UNAVAILABLE_POLL: Duration = Duration::from_secs(1);

/// Timeout for reading the events of a run that ended in another process.
const READ_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Outcome of a run for a waiting caller.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitOutcome {
    /// Final state as JSON, with open interrupts under `__interrupt__`.
    Values(EventData),
    /// The run failed.
    Failed {
        /// Class of the error.
        name: String,
        /// Text of the error.
        message: String,
        /// Final state, if it is known.
        values: Option<EventData>,
    },
}

impl From<RunOutcome> for WaitOutcome {
    fn from(outcome: RunOutcome) -> Self {
        let values = outcome.values.map(|values| values.json());
        match outcome.error {
            Some((name, message)) => Self::Failed {
                name,
                message,
                values,
            },
            None if outcome.status == RunStatus::Timeout => Self::Failed {
                name: "TimeoutError".to_owned(),
                message: "the run reached its time limit".to_owned(),
                values,
            },
            None => Self::Values(values.unwrap_or_else(no_values)),
        }
    }
}

impl WaitOutcome {
    /// Builds the outcome of an accepted run whose end cannot be read.
    pub(crate) fn unknown(error: &RunError) -> Self {
        Self::Failed {
            name: "RunError".to_owned(),
            message: error.to_string(),
            values: None,
        }
    }
}

/// End of a run, from this process or from the store.
pub(crate) enum EndedRun {
    Here(RunOutcome),
    Stored(Arc<RunRecord>),
}

/// Waits until `record`'s run has ended in any process. The wait has no timeout, because the time
/// limits of the run apply.
pub(crate) async fn wait_until_ended(
    record: &RunRecord,
    runtime: &Runtime,
) -> Result<EndedRun, RunError> {
    let poller = runtime
        .registry
        .pollers
        .for_run(&record.run_id, &runtime.ports);
    loop {
        if let Some(active) = runtime.registry.active(&record.run_id)
            && let Some(outcome) = active.ended().await
        {
            return Ok(EndedRun::Here(outcome));
        }
        let now = match poller.cached_within(REMOTE_POLL).await {
            // A short outage of the store does not stop the run.
            Err(StoreError::Unavailable(_)) => {
                tokio::time::sleep(UNAVAILABLE_POLL).await;
                continue;
            }
            result => result?.ok_or_else(|| RunError::NotFound(record.run_id.clone()))?,
        };
        if now.status.is_terminal() {
            return Ok(EndedRun::Stored(now));
        }
        // Another process executes the run, or the run is between two owners.
        tokio::time::sleep(REMOTE_POLL).await;
    }
}

/// Waits for the end of `record`'s run and returns its outcome.
pub(crate) async fn wait(record: &RunRecord, runtime: &Runtime) -> Result<WaitOutcome, RunError> {
    let record = match wait_until_ended(record, runtime).await? {
        EndedRun::Here(outcome) => return Ok(outcome.into()),
        EndedRun::Stored(record) => record,
    };
    let values = match last_values(&record, &runtime.ports).await? {
        // The run's checkpoints were pruned: the thread has the last state of this or a later run.
        None if record.status == RunStatus::Success => runtime
            .ports
            .checkpointer
            .get(&record.thread_id, None)
            .await?
            .map(|head| encode_values(&head)),
        values => values,
    };
    let values = match values {
        // A temporary thread was deleted with the run.
        None => match runtime.ports.query.kept_values(&record.run_id).await? {
            None => {
                last_published_values(
                    &runtime
                        .registry
                        .pollers
                        .for_run(&record.run_id, &runtime.ports),
                    &runtime.ports,
                )
                .await
            }
            stored => stored.map(EventData::from),
        },
        values => values,
    };
    Ok(match record.status {
        // A rollback was requested, so it is not a failure.
        RunStatus::Error if record.is_rolled_back() => {
            WaitOutcome::Values(values.unwrap_or_else(no_values))
        }
        RunStatus::Error | RunStatus::Timeout => WaitOutcome::Failed {
            name: record.error_name().to_owned(),
            message: record
                .error
                .clone()
                .unwrap_or_else(|| "the run failed".to_owned()),
            values,
        },
        RunStatus::Success if values.is_none() => WaitOutcome::Failed {
            name: LOST_ERROR.to_owned(),
            message:
                "the run succeeded in another process, but its final state was deleted with its thread"
                    .to_owned(),
            values: None,
        },
        _ => WaitOutcome::Values(values.unwrap_or_else(no_values)),
    })
}

/// Returns the JSON of a state without fields.
fn no_values() -> EventData {
    Bytes::from_static(b"{}").into()
}

/// Returns the last state that the run published, if its events are retained.
async fn last_published_values(poller: &StatusPoller, ports: &RuntimePorts) -> Option<EventData> {
    let read = async {
        let mut subscription =
            subscribe_with_retry(poller, ResumeFrom::Start, Duration::ZERO, &*ports.bridge)
                .await
                .ok()?;
        let mut last = None;
        while let Some(item) = subscription.items.next().await {
            match item {
                StreamItem::Event(event) if event.event == "values" => last = Some(event.data),
                StreamItem::Event(_) | StreamItem::Heartbeat => {}
                StreamItem::End(_) => return last,
                // A newer state may be missing after a gap.
                StreamItem::Gap(_) | StreamItem::Aborted => return None,
            }
        }
        None
    };
    tokio::time::timeout(READ_EVENTS_TIMEOUT, read)
        .await
        .ok()
        .flatten()
}

/// Returns the state at the last checkpoint of the run.
async fn last_values(
    record: &RunRecord,
    ports: &RuntimePorts,
) -> Result<Option<EventData>, RunError> {
    let query = HistoryQuery {
        limit: 1_000,
        ..HistoryQuery::default()
    };
    let metas = ports
        .checkpointer
        .list_meta(&record.thread_id, &query)
        .await?;
    let Some(meta) = metas
        .iter()
        .find(|meta| meta.run_id.as_ref() == Some(&record.run_id))
    else {
        return Ok(None);
    };
    let snapshot = ports
        .checkpointer
        .get(&record.thread_id, Some(&meta.checkpoint_id))
        .await?;
    Ok(snapshot.map(|snapshot| encode_values(&snapshot)))
}

/// Encodes a state for waiting callers.
fn encode_values(snapshot: &Snapshot) -> EventData {
    let interrupts: Vec<_> = snapshot
        .meta
        .next
        .iter()
        .flat_map(|task| task.interrupts.clone())
        .collect();
    values_data(&snapshot.state, &interrupts)
}
