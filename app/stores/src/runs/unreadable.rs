//! A run whose row cannot be read: nobody can go on with it, and it must not keep those behind it waiting.

use harness::runtime::runs::{CancelAction, LOST_ERROR, MultitaskStrategy, RunCompletionData, RunStatus};
use sea_orm::{ActiveModelTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel};
use serde_json::{Map, Value};

use super::row::{from_json, from_word};
use crate::entity::{plain, run};
use crate::script::Script;

/// The stop reason of such a run.
pub(super) const UNREADABLE: &str = "unreadable";

/// Ends the run as an error that says why, in the transaction that found it. What of the row makes no sense goes, so that the
/// run can be shown again.
pub(super) async fn end_unreadable(tx: &DatabaseTransaction, row: run::Model, why: &str, now: i64) -> Result<(), DbErr> {
    tracing::error!(run_id = %row.run_id, thread_id = %row.thread_id, why, "a run that cannot be read is ended");
    let ended = run::Model {
        status: RunStatus::Error.as_str().to_owned(),
        error: Some(plain(&format!("the run cannot be read: {why}"))),
        error_name: Some(LOST_ERROR.to_owned()),
        stop_reason: Some(UNREADABLE.to_owned()),
        recipe_json: None,
        owner: None,
        // Whoever may still have it writes no more.
        attempt: row.attempt.clamp(0, i64::from(u32::MAX) - 1) + 1,
        metadata_json: readable::<Map<String, Value>>(row.metadata_json, "{}"),
        kwargs_json: readable::<Value>(row.kwargs_json, "{}"),
        multitask_strategy: match from_word::<MultitaskStrategy>(row.multitask_strategy.clone()) {
            Ok(_) => row.multitask_strategy,
            Err(_) => MultitaskStrategy::Reject.as_str().to_owned(),
        },
        cancel_action: row.cancel_action.filter(|word| from_word::<CancelAction>(word.clone()).is_ok()),
        completion_json: row.completion_json.filter(|text| from_json::<RunCompletionData>(text).is_ok()),
        updated_at: now,
        ..row
    };
    let (run, thread) = (ended.run_id.clone(), ended.thread_id.clone());
    let all = ended.into_active_model().reset_all();
    run::Entity::update(all).exec(tx).await?;
    let mut script = Script::new(tx);
    script.add(super::commit::REST_THREAD, ["error".into(), thread.into(), run.as_str().into()]);
    script.add("DELETE FROM tool_calls WHERE run_id = ?", [run.into()]);
    script.run(tx).await.map(drop)
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
