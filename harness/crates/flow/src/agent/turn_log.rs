//! Durable record of the turns whose repetition has effects.

use deerflow_runtime::agent::{CallLog, CallProgress};
use serde_json::Value;

use crate::adapter::{
    AgentTurnResult, ErrorCategory, FlowError, InvocationId, TurnEffect, TurnStatus,
};

/// Maximum size of a recorded result, in bytes. The outcome of a larger one is unknown after a
/// takeover.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Records that a turn starts. Returns its result if an earlier process recorded one.
///
/// # Errors
/// `turn_outcome_unknown`, if an earlier process began the turn and a repetition may have effects.
pub(super) async fn record_start(
    calls: &CallLog,
    turn: &InvocationId,
    effect: TurnEffect,
) -> Result<Option<AgentTurnResult>, FlowError> {
    let unavailable = |error| {
        let message = format!("the turn cannot be recorded: {error}");
        FlowError::new("storage_unavailable", ErrorCategory::Engine, message)
    };
    let former = calls.former(&turn.0).await.map_err(unavailable)?;
    if let Some(CallProgress::Done(ended)) = &former
        && let Some(result) = recorded(turn, ended)
    {
        return Ok(Some(result));
    }
    if effect == TurnEffect::Unsafe && former.is_some() {
        return Err(FlowError::new(
            "turn_outcome_unknown",
            ErrorCategory::Adapter,
            "the turn was interrupted and its outcome is unknown; it is not repeated, because it \
             may have effects",
        ));
    }
    let written = calls.write(&turn.0, CallProgress::Started).await;
    written.map_err(unavailable)?;
    Ok(None)
}

/// Records the result of a turn.
pub(super) async fn record_end(calls: &CallLog, turn: &InvocationId, result: &AgentTurnResult) {
    let ended = CallProgress::Done(to_record(turn, result));
    if let Err(error) = calls.write(&turn.0, ended).await {
        tracing::warn!(%turn, %error, "the end of a turn cannot be recorded");
    }
}

/// Returns the recorded form of a result. Null stands for a result that is not recorded: a question
/// belongs to the state of its agent, which the record does not have.
fn to_record(turn: &InvocationId, result: &AgentTurnResult) -> Value {
    if result.status == TurnStatus::Interrupted {
        return Value::Null;
    }
    match serde_json::to_string(result) {
        Ok(text) if text.len() <= MAX_RESULT_BYTES => {
            serde_json::from_str(&text).unwrap_or_default()
        }
        Ok(text) => {
            tracing::warn!(%turn, bytes = text.len(), "result of a turn is too large to record");
            Value::Null
        }
        Err(error) => {
            tracing::error!(%turn, %error, "result of a turn cannot be recorded");
            Value::Null
        }
    }
}

fn recorded(turn: &InvocationId, ended: &Value) -> Option<AgentTurnResult> {
    if ended.is_null() {
        return None;
    }
    serde_json::from_value(ended.clone())
        .inspect_err(
            |error| tracing::error!(%turn, %error, "recorded result of a turn is unreadable"),
        )
        .ok()
}

#[cfg(test)]
#[path = "turn_log_tests.rs"]
mod tests;
