//! Ends runs with an unreadable row: no node can execute them, and they must not block the runs
//! queued after them.

use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::WebhookCall;
use deerflow_runtime::runs::{
    CancelAction, LOST_ERROR, MultitaskStrategy, RunCompletionData, RunStatus, StopReason,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter,
};
use serde_json::{Map, Value};

use super::commit::{SET_THREAD_STATUS, delete_temporary_thread};
use super::row::record;
use crate::db::entity::{moment, plain, run, thread};
use crate::db::json::{from_json, from_word};
use crate::db::statement_batch::StatementBatch;
use crate::sql::usage::add_usage;
use crate::sql::webhooks::insert_call;

/// Ends the run with an error, in the transaction that read its row, and updates its thread like
/// any other end.
pub(super) async fn end_unreadable(
    tx: &DatabaseTransaction,
    row: run::Model,
    reason: &str,
    now: i64,
) -> Result<(), DbErr> {
    let (run, thread) = (row.run_id.clone(), row.thread_id.clone());
    let completion = end_unreadable_row(tx, row, reason, now).await?;
    let mut statements = StatementBatch::new(tx);
    statements.add(
        SET_THREAD_STATUS,
        ["error".into(), thread.as_str().into(), run.as_str().into()],
    );
    statements.run(tx).await?;
    let idle = thread::Entity::find_by_id(&thread).filter(thread::Column::Status.ne("busy"));
    let is_temporary = idle
        .filter(thread::Column::Temporary.eq(true))
        .one(tx)
        .await?
        .is_some();
    match (ThreadId::parse(thread), RunId::parse(run)) {
        (Ok(thread), Ok(run)) if is_temporary => {
            delete_temporary_thread(tx, &thread, &run, completion).await
        }
        _ => Ok(()),
    }
}

/// Ends the run without a change of its thread, which has other active runs or is about to get one.
pub(super) async fn end_unreadable_row(
    tx: &DatabaseTransaction,
    row: run::Model,
    reason: &str,
    now: i64,
) -> Result<Option<RunCompletionData>, DbErr> {
    tracing::error!(run_id = %row.run_id, thread_id = %row.thread_id, reason, "a run is unreadable, ending it with an error");
    let error = format!("the run cannot be read: {reason}");
    let (run, begun_at) = (row.run_id.clone(), row.updated_at);
    let ended = sanitised(row);
    let ended = run::Model {
        status: RunStatus::Error.as_str().to_owned(),
        error: Some(plain(&error)),
        error_name: Some(LOST_ERROR.to_owned()),
        stop_reason: Some(StopReason::Unreadable.into()),
        recipe_json: None,
        owner: None,
        // Fences off a node that may still own the run.
        attempt: ended.attempt.min(i64::from(u32::MAX) - 1) + 1,
        updated_at: now,
        ..ended
    };
    run::Entity::update(ended.clone().into_active_model().reset_all())
        .exec(tx)
        .await?;
    let mut statements = StatementBatch::new(tx);
    statements.add(
        "DELETE FROM tool_calls WHERE run_id = ?",
        [run.as_str().into()],
    );
    let ended = record(ended).ok();
    if let Some(ended) = &ended {
        add_usage(&mut statements, &run, &ended.completion);
    }
    statements.run(tx).await?;
    let Some(ended) = ended else { return Ok(None) };
    if let Some(url) = ended.webhook {
        let error = Some((LOST_ERROR.to_owned(), error));
        insert_call(
            tx,
            &run,
            now,
            &WebhookCall {
                url,
                started_at: moment(begun_at),
                values: None,
                error,
            },
        )
        .await?;
    }
    Ok(Some(ended.completion))
}

/// Replaces the unreadable values of a row, so that the run can be listed.
pub(super) fn sanitised(row: run::Model) -> run::Model {
    run::Model {
        attempt: row.attempt.clamp(0, i64::from(u32::MAX)),
        metadata_json: readable::<Map<String, Value>>(row.metadata_json, "{}"),
        kwargs_json: readable::<Value>(row.kwargs_json, "{}"),
        multitask_strategy: match from_word::<MultitaskStrategy>(row.multitask_strategy.clone()) {
            Ok(_) => row.multitask_strategy,
            Err(_) => MultitaskStrategy::Reject.as_str().to_owned(),
        },
        cancel_action: row
            .cancel_action
            .filter(|word| from_word::<CancelAction>(word.clone()).is_ok()),
        completion_json: row
            .completion_json
            .filter(|text| from_json::<RunCompletionData>(text).is_ok()),
        ..row
    }
}

fn readable<T: serde::de::DeserializeOwned>(text: String, otherwise: &str) -> String {
    match from_json::<T>(&text) {
        Ok(_) => text,
        Err(_) => otherwise.to_owned(),
    }
}

#[cfg(test)]
#[path = "unreadable_tests.rs"]
mod tests;
