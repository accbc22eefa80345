//! Durable record of the turns whose repetition has effects.

use deerflow_runtime::agent::{CallLog, CallProgress};
use serde_json::Value;

use crate::adapter::{ErrorCategory, FlowError, InvocationId, TurnEffect};

/// Records that a turn starts.
///
/// # Errors
/// `turn_outcome_unknown`, if an earlier process began the turn and a repetition may have effects.
pub(super) async fn record_start(
    calls: &CallLog,
    turn: &InvocationId,
    effect: TurnEffect,
) -> Result<(), FlowError> {
    let unavailable = |error| {
        let message = format!("the turn cannot be recorded: {error}");
        FlowError::new("storage_unavailable", ErrorCategory::Engine, message)
    };
    let former = calls.former(&turn.0).await.map_err(unavailable)?;
    if effect == TurnEffect::Unsafe && former.is_some() {
        return Err(FlowError::new(
            "turn_outcome_unknown",
            ErrorCategory::Adapter,
            "the turn was interrupted and its outcome is unknown; it is not repeated, because it \
             may have effects",
        ));
    }
    calls
        .write(&turn.0, CallProgress::Started)
        .await
        .map_err(unavailable)
}

/// Records that a turn ended.
pub(super) async fn record_end(calls: &CallLog, turn: &InvocationId) {
    let written = calls.write(&turn.0, CallProgress::Done(Value::Null)).await;
    if let Err(error) = written {
        tracing::warn!(%turn, %error, "the end of a turn cannot be recorded");
    }
}
