//! Conversion between a run and its row.

use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::NewRun;
use deerflow_runtime::runs::{CancelAction, MultitaskStrategy, RunRecord, RunStatus};
use sea_orm::DbErr;
use sea_orm::sea_query::Expr;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::db::entity::{micros, moment, plain, run};

/// Condition for unfinished runs. Written like the partial index's condition, so that both
/// databases use the index.
pub(crate) fn is_active() -> Expr {
    Expr::cust("runs.status IN ('pending', 'starting', 'running')")
}

/// Condition for runs that a node owns, written like an index's condition.
pub(crate) fn is_owned() -> Expr {
    Expr::cust("runs.status IN ('starting', 'running')")
}

/// Condition for pending runs without a cancel request, written like an index's condition.
pub(crate) fn is_waiting() -> Expr {
    Expr::cust("runs.status = 'pending' AND runs.cancel_action IS NULL")
}

/// Condition for pending runs that were claimed before and released.
pub(crate) fn was_released() -> Expr {
    Expr::cust("(runs.status = 'pending' AND runs.attempt > 1)")
}

/// Builds the row of a new run.
pub(crate) fn new_row(new: &NewRun, status: RunStatus) -> run::Model {
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
        kwargs_json: json_text(&request.presentation.request_echo),
        cancel_action: None,
        error: None,
        error_name: None,
        stop_reason: None,
        completion_json: None,
        last_batch: 0,
        recipe_json: Some(json_text(&*new.recipe)),
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
        kwargs: from_json(&row.kwargs_json)?,
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

/// Serialises a value whose serialisation cannot fail.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialise a value to json");
        "null".to_owned()
    })
}

/// Parses stored JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Parses a stored word.
pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, String> {
    serde_json::from_value(Value::String(word)).map_err(|error| error.to_string())
}
