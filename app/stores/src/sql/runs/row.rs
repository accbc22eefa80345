//! Conversion between a run and its row.

use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_runtime::checkpoint::ThreadHead;
use deerflow_runtime::runs::store::NewRun;
use deerflow_runtime::runs::{CancelAction, MultitaskStrategy, RequestEcho, RunRecord, RunStatus};
use sea_orm::DbErr;

use crate::db::entity::{micros, moment, plain, run};
use crate::db::json::{from_json, from_word};

/// Builds the head of a thread from its columns; `None` if the id cannot be read.
pub(crate) fn head(checkpoint_id: Option<String>, log_tail: i64) -> Option<ThreadHead> {
    Some(ThreadHead {
        checkpoint_id: checkpoint_id.map(CheckpointId::parse).transpose().ok()?,
        log_tail: u64::try_from(log_tail).ok()?,
    })
}

/// Builds the record of a run that was just admitted, as the store returns it later.
pub(crate) fn admitted(new: &NewRun, status: RunStatus) -> RunRecord {
    let request = new.request();
    RunRecord {
        run_id: new.run_id.clone(),
        thread_id: new.thread_id.clone(),
        assistant: plain(&request.assistant),
        user_id: new.user_id.clone(),
        status,
        attempt: 1,
        metadata: request.metadata.clone(),
        kwargs: request.presentation.request_echo.clone(),
        multitask: request.multitask,
        model_name: request.model_name().map(plain),
        webhook: request.webhook.as_deref().map(plain),
        cancel: None,
        error: None,
        error_name: None,
        stop_reason: None,
        completion: Default::default(),
        created_at: moment(micros(new.created_at)),
        updated_at: moment(micros(new.at)),
    }
}

/// Returns the assistant that the request names in its metadata.
pub(super) fn named_assistant(new: &NewRun) -> Option<String> {
    let named = new.request().metadata.get("assistant_id");
    named.and_then(serde_json::Value::as_str).map(plain)
}

/// Reads a row. The error of an unreadable one names the run.
pub(crate) fn record(row: run::Model) -> Result<RunRecord, DbErr> {
    let id = row.run_id.clone();
    read(row).map_err(|reason| DbErr::Type(format!("run {id} is damaged: {reason}")))
}

/// Fails with a reason if the row is unreadable.
pub(crate) fn readable(row: &run::Model) -> Result<(), String> {
    read(row.clone()).map(drop)
}

/// Reads rows for a list, except unreadable ones, which are logged.
pub(crate) fn records(rows: Vec<run::Model>) -> Vec<RunRecord> {
    rows.into_iter()
        .filter_map(|row| {
            record(row)
                .inspect_err(
                    |error| tracing::error!(%error, "a run is damaged, omitted from a list"),
                )
                .ok()
        })
        .collect()
}

fn read(row: run::Model) -> Result<RunRecord, String> {
    let word = |what: &str, word: &str| format!("unknown {what} {word:?}");
    Ok(RunRecord {
        run_id: RunId::parse(row.run_id).map_err(|error| error.to_string())?,
        thread_id: ThreadId::parse(row.thread_id).map_err(|error| error.to_string())?,
        assistant: row.assistant_id,
        user_id: row.user_id,
        status: RunStatus::parse(&row.status).ok_or_else(|| word("status", &row.status))?,
        attempt: u32::try_from(row.attempt).map_err(|error| error.to_string())?,
        metadata: from_json(&row.metadata_json)?,
        kwargs: RequestEcho::from_text(row.kwargs_json).map_err(|error| error.to_string())?,
        multitask: from_word::<MultitaskStrategy>(row.multitask_strategy)?,
        model_name: row.model_name,
        webhook: row.webhook,
        cancel: row
            .cancel_action
            .map(from_word::<CancelAction>)
            .transpose()?,
        error: row.error,
        error_name: row.error_name,
        stop_reason: row.stop_reason,
        completion: row
            .completion_json
            .as_deref()
            .map(from_json)
            .transpose()?
            .unwrap_or_default(),
        created_at: moment(row.created_at),
        updated_at: moment(row.updated_at),
    })
}

/// Returns the stored word of a cancel action.
pub(crate) fn cancel_word(action: CancelAction) -> &'static str {
    match action {
        CancelAction::Interrupt => "interrupt",
        CancelAction::Rollback => "rollback",
    }
}
