//! Waits for a run's end and tells what became of the state.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;

use super::error::RunError;
use super::live::RunOutcome;
use super::looks::RunLook;
use super::parts::RuntimeParts;
use super::patience::subscribe_to;
use super::record::{LOST_ERROR, RunRecord};
use super::recovery::ROLLED_BACK;
use super::registry::RunRegistry;
use super::status::RunStatus;
use super::store::StoreError;
use crate::runtime::checkpoint::{HistoryQuery, Snapshot};
use crate::runtime::serialization::values_json;
use crate::runtime::stream_bridge::{ResumeFrom, StreamItem};

/// How often the store is asked for the end of a run that is executed elsewhere.
const REMOTE_POLL: Duration = Duration::from_millis(100);
/// The same while the store does not answer.
const UNAVAILABLE_POLL: Duration = Duration::from_secs(1);

/// How long the events of a run that ended elsewhere are read.
const SHOWN_LIMIT: Duration = Duration::from_secs(10);

/// What a waiting caller gets.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitOutcome {
    /// The last state as JSON, with open questions under `__interrupt__`.
    Values(Bytes),
    /// The run failed.
    Failed {
        /// The error's class.
        name: String,
        /// The error's text.
        message: String,
        /// The last state, if there is one.
        values: Option<Bytes>,
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
                message: "the run took too long".to_owned(),
                values,
            },
            None => Self::Values(values.unwrap_or_else(|| Bytes::from_static(b"{}"))),
        }
    }
}

impl WaitOutcome {
    /// What a caller gets whose run was accepted and cannot be found out about.
    pub(super) fn unknown(error: &RunError) -> Self {
        Self::Failed {
            name: "RunError".to_owned(),
            message: error.to_string(),
            values: None,
        }
    }
}

/// How a run ended: as this process saw it, or as the store has it.
pub(super) enum Over {
    Here(RunOutcome),
    Stored(Arc<RunRecord>),
}

/// Waits until `record`'s run is over, wherever it is executed. Its own limits end every run.
pub(super) async fn until_over(
    record: &RunRecord,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> Result<Over, RunError> {
    let look = registry.looks.at(&record.run_id, parts);
    loop {
        if let Some(live) = registry.live(&record.run_id)
            && let Some(outcome) = live.ended().await
        {
            return Ok(Over::Here(outcome));
        }
        let now = match look.within(REMOTE_POLL).await {
            // The run goes on, wherever; a store that is away for a moment says nothing about it.
            Err(StoreError::Unavailable(_)) => {
                tokio::time::sleep(UNAVAILABLE_POLL).await;
                continue;
            }
            found => found?.ok_or_else(|| RunError::NotFound(record.run_id.clone()))?,
        };
        if now.status.is_terminal() {
            return Ok(Over::Stored(now));
        }
        // Executed elsewhere, or between two processes: the store will tell.
        tokio::time::sleep(REMOTE_POLL).await;
    }
}

/// Waits for the end of `record`'s run and tells what came of it.
pub(super) async fn wait(
    record: &RunRecord,
    registry: &RunRegistry,
    parts: &RuntimeParts,
) -> Result<WaitOutcome, RunError> {
    let record = match until_over(record, registry, parts).await? {
        Over::Here(outcome) => return Ok(outcome.into()),
        Over::Stored(record) => record,
    };
    let values = match last_values(&record, parts).await? {
        // What it wrote was pruned: its thread stands where it or a later run left it.
        None if record.status == RunStatus::Success => parts
            .checkpointer
            .get(&record.thread_id, None)
            .await?
            .map(|head| shown(&head)),
        values => values,
    };
    let values = match values {
        // A temporary thread went with the run.
        None => match parts.query.kept_values(&record.run_id).await? {
            None => last_shown(&registry.looks.at(&record.run_id, parts), parts).await,
            kept => kept,
        },
        values => values,
    };
    Ok(match record.status {
        // As it was asked for, it is no failure.
        RunStatus::Error if record.stop_reason.as_deref() == Some(ROLLED_BACK) => {
            WaitOutcome::Values(values.unwrap_or_else(|| Bytes::from_static(b"{}")))
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
                "the run ended well in another process, and its last state is gone with its thread"
                    .to_owned(),
            values: None,
        },
        _ => WaitOutcome::Values(values.unwrap_or_else(|| Bytes::from_static(b"{}"))),
    })
}

/// The last state that the run's viewers were shown, as far as its events are left.
async fn last_shown(look: &RunLook, parts: &RuntimeParts) -> Option<Bytes> {
    let read = async {
        let mut subscription =
            subscribe_to(look, ResumeFrom::Start, Duration::ZERO, &*parts.bridge)
                .await
                .ok()?;
        let mut last = None;
        while let Some(item) = subscription.items.next().await {
            match item {
                StreamItem::Event(event) if event.event == "values" => {
                    last = Some(event.data.into_bytes())
                }
                StreamItem::Event(_) | StreamItem::Heartbeat => {}
                StreamItem::End(_) => return last,
                // What is behind a hole may be newer.
                StreamItem::Gap(_) | StreamItem::Aborted => return None,
            }
        }
        None
    };
    tokio::time::timeout(SHOWN_LIMIT, read).await.ok().flatten()
}

/// The state at the last checkpoint that the run wrote.
async fn last_values(record: &RunRecord, parts: &RuntimeParts) -> Result<Option<Bytes>, RunError> {
    let query = HistoryQuery {
        limit: 1_000,
        ..HistoryQuery::default()
    };
    let metas = parts
        .checkpointer
        .list_meta(&record.thread_id, &query)
        .await?;
    let Some(meta) = metas
        .iter()
        .find(|meta| meta.run_id.as_ref() == Some(&record.run_id))
    else {
        return Ok(None);
    };
    let snapshot = parts
        .checkpointer
        .get(&record.thread_id, Some(&meta.checkpoint_id))
        .await?;
    Ok(snapshot.map(|snapshot| shown(&snapshot)))
}

/// A state as a waiting caller gets it.
fn shown(snapshot: &Snapshot) -> Bytes {
    let questions: Vec<_> = snapshot
        .meta
        .next
        .iter()
        .flat_map(|task| task.interrupts.clone())
        .collect();
    values_json(&snapshot.state, &questions)
}
