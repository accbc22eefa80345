//! Conversion between a run and its row.

use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_runtime::checkpoint::ThreadHead;
use deerflow_runtime::runs::store::NewRun;
use deerflow_runtime::runs::{CancelAction, MultitaskStrategy, RequestEcho, RunRecord, RunStatus};
use sea_orm::DbErr;

use super::stored_request::request_text;
use crate::db::entity::{micros, moment, plain, run};
use crate::db::json::{from_json, from_word, json_text};

/// Builds the row of a new run.
pub(crate) fn new_row(new: &NewRun, status: RunStatus) -> run::Model {
    run::Model {
        kwargs_json: echo_text(new).to_owned(),
        ..row_without_echo(new, status)
    }
}

/// Returns the JSON of the request as clients see it.
pub(super) fn echo_text(new: &NewRun) -> &str {
    new.request().presentation.request_echo.text()
}

/// Builds the row of a new run with an empty `kwargs_json`, which is [`echo_text`] and may be large.
pub(super) fn row_without_echo(new: &NewRun, status: RunStatus) -> run::Model {
    let request = new.request();
    run::Model {
        run_id: new.run_id.to_string(),
        thread_id: new.thread_id.to_string(),
        assistant_id: plain(&request.assistant),
        user_id: new.user_id.clone(),
        status: status.as_str().to_owned(),
        attempt: 1,
        model_name: request.model_name().map(plain),
        multitask_strategy: request.multitask.as_str().to_owned(),
        metadata_json: json_text(&request.metadata),
        kwargs_json: String::new(),
        cancel_action: None,
        error: None,
        error_name: None,
        stop_reason: None,
        completion_json: None,
        last_batch: 0,
        recipe_json: Some(request_text(&new.recipe, echo_text(new))),
        webhook: request.webhook.as_deref().map(plain),
        owner: status.is_owned().then(|| new.owner.to_string()),
        losses: 0,
        place: 0,
        due_at: (new.created_at > new.at).then(|| micros(new.created_at)),
        started_at: None,
        created_at: micros(new.created_at),
        updated_at: micros(new.at),
    }
}

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
