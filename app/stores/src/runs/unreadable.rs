//! A run whose row cannot be read: nobody can go on with it, and it must not keep those behind it waiting.

use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::WebhookCall;
use harness::runtime::runs::{
    CancelAction, LOST_ERROR, MultitaskStrategy, RunCompletionData, RunStatus,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter,
};
use serde_json::{Map, Value};

use super::commit::{REST_THREAD, forget_thread};
use super::row::{from_json, from_word, record};
use crate::entity::{moment, plain, run, thread};
use crate::script::Script;
use crate::usage::add_usage;
use crate::webhooks::keep_call;

/// The stop reason of such a run.
pub(super) const UNREADABLE: &str = "unreadable";

/// Ends the run as an error that says why, in the transaction that found it. Its thread is left as by any end.
pub(super) async fn end_unreadable(
    tx: &DatabaseTransaction,
    row: run::Model,
    why: &str,
    now: i64,
) -> Result<(), DbErr> {
    let (run, of) = (row.run_id.clone(), row.thread_id.clone());
    let completion = end_beside(tx, row, why, now).await?;
    let mut script = Script::new(tx);
    script.add(
        REST_THREAD,
        ["error".into(), of.as_str().into(), run.as_str().into()],
    );
    script.run(tx).await?;
    let rests = thread::Entity::find_by_id(&of).filter(thread::Column::Status.ne("busy"));
    let goes = rests
        .filter(thread::Column::Temporary.eq(true))
        .one(tx)
        .await?
        .is_some();
    match (ThreadId::parse(of), RunId::parse(run)) {
        (Ok(thread), Ok(run)) if goes => forget_thread(tx, &thread, &run, completion).await,
        _ => Ok(()),
    }
}

/// The same in a thread that others are at work in, or are about to be.
pub(super) async fn end_beside(
    tx: &DatabaseTransaction,
    row: run::Model,
    why: &str,
    now: i64,
) -> Result<Option<RunCompletionData>, DbErr> {
    tracing::error!(run_id = %row.run_id, thread_id = %row.thread_id, why, "a run that cannot be read is ended");
    let error = format!("the run cannot be read: {why}");
    let (run, begun_at) = (row.run_id.clone(), row.updated_at);
    let ended = legible(row);
    let ended = run::Model {
        status: RunStatus::Error.as_str().to_owned(),
        error: Some(plain(&error)),
        error_name: Some(LOST_ERROR.to_owned()),
        stop_reason: Some(UNREADABLE.to_owned()),
        recipe_json: None,
        owner: None,
        // Whoever may still have it writes no more.
        attempt: ended.attempt.min(i64::from(u32::MAX) - 1) + 1,
        updated_at: now,
        ..ended
    };
    run::Entity::update(ended.clone().into_active_model().reset_all())
        .exec(tx)
        .await?;
    let mut script = Script::new(tx);
    script.add(
        "DELETE FROM tool_calls WHERE run_id = ?",
        [run.as_str().into()],
    );
    let ended = record(ended).ok();
    if let Some(ended) = &ended {
        add_usage(&mut script, &run, &ended.completion);
    }
    script.run(tx).await?;
    let Some(ended) = ended else { return Ok(None) };
    if let Some(url) = ended.webhook {
        let error = Some((LOST_ERROR.to_owned(), error));
        keep_call(
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

/// The row without what makes no sense of it, so that the run can be shown.
pub(super) fn legible(row: run::Model) -> run::Model {
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
