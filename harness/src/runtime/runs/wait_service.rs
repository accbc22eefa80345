//! Waits for a run's end and tells what became of the state.

use std::time::Duration;

use bytes::Bytes;

use super::error::RunError;
use super::live::RunOutcome;
use super::parts::RuntimeParts;
use super::record::RunRecord;
use super::registry::RunRegistry;
use super::status::RunStatus;
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::HistoryQuery;
use crate::runtime::serialization::values_json;

/// How often the store is asked for the end of a run that is executed elsewhere.
const REMOTE_POLL: Duration = Duration::from_millis(100);

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
            Some((name, message)) => Self::Failed { name, message, values },
            None if outcome.status == RunStatus::Timeout => {
                Self::Failed { name: "TimeoutError".to_owned(), message: "the run took too long".to_owned(), values }
            }
            None => Self::Values(values.unwrap_or_else(|| Bytes::from_static(b"{}"))),
        }
    }
}

impl WaitOutcome {
    /// What a caller gets whose run was accepted and cannot be found out about.
    pub(super) fn unknown(error: &RunError) -> Self {
        Self::Failed { name: "RunError".to_owned(), message: error.to_string(), values: None }
    }
}

/// How a run ended: as this process saw it, or as the store has it.
pub(super) enum Over {
    Here(RunOutcome),
    Stored(Box<RunRecord>),
}

/// Waits until `record`'s run is over, wherever it is executed. Its own limits end every run.
pub(super) async fn until_over(record: &RunRecord, registry: &RunRegistry, parts: &RuntimeParts) -> Result<Over, RunError> {
    loop {
        if let Some(live) = registry.live(&record.run_id)
            && let Some(outcome) = live.ended().await
        {
            return Ok(Over::Here(outcome));
        }
        let now = parts.query.get(&record.run_id, &Owner::None).await?.ok_or_else(|| RunError::NotFound(record.run_id.clone()))?;
        if now.status.is_terminal() {
            return Ok(Over::Stored(Box::new(now)));
        }
        // Executed elsewhere, or between two processes: the store will tell.
        tokio::time::sleep(REMOTE_POLL).await;
    }
}

/// Waits for the end of `record`'s run and tells what came of it.
pub(super) async fn wait(record: &RunRecord, registry: &RunRegistry, parts: &RuntimeParts) -> Result<WaitOutcome, RunError> {
    let record = match until_over(record, registry, parts).await? {
        Over::Here(outcome) => return Ok(outcome.into()),
        Over::Stored(record) => record,
    };
    let values = last_values(&record, parts).await?;
    Ok(match record.status {
        RunStatus::Error | RunStatus::Timeout => WaitOutcome::Failed {
            name: record.error_name().to_owned(),
            message: record.error.unwrap_or_else(|| "the run failed".to_owned()),
            values,
        },
        _ => WaitOutcome::Values(values.unwrap_or_else(|| Bytes::from_static(b"{}"))),
    })
}

/// The state at the last checkpoint that the run wrote.
async fn last_values(record: &RunRecord, parts: &RuntimeParts) -> Result<Option<Bytes>, RunError> {
    let query = HistoryQuery { limit: 1_000, ..HistoryQuery::default() };
    let metas = parts.checkpointer.list_meta(&record.thread_id, &query).await?;
    let Some(meta) = metas.iter().find(|meta| meta.run_id.as_ref() == Some(&record.run_id)) else {
        return Ok(None);
    };
    let snapshot = parts.checkpointer.get(&record.thread_id, Some(&meta.checkpoint_id)).await?;
    Ok(snapshot.map(|snapshot| {
        let questions: Vec<_> = snapshot.meta.next.iter().flat_map(|task| task.interrupts.clone()).collect();
        values_json(&snapshot.state, &questions)
    }))
}
