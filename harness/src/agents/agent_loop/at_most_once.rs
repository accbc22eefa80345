//! Executes a tool call at most as often as its effect class allows, also across restarts of the
//! run.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::ids::RunId;
use crate::messages::ToolCall;
use crate::runtime::agent::Task;
use crate::runtime::fail_points;
use crate::runtime::runs::store::{CallProgress, StoreError};
use crate::tools::{DynTool, Effect, ToolContext, ToolError, ToolOutput};

/// Result of a call as it is stored in the call log.
type CallResult = Result<ToolOutput, ToolError>;

/// Decision about a call.
#[derive(Debug, PartialEq)]
enum CallDecision {
    /// Execute the call.
    Execute,
    /// The call has ended before with this recorded result.
    Recorded(Value),
    /// The call was started before and its outcome is unknown.
    InDoubt,
}

/// Decides from the effect class and the progress of an earlier attempt.
fn decide(effect: Effect, previous: Option<CallProgress>) -> CallDecision {
    match (effect, previous) {
        (_, None) => CallDecision::Execute,
        (_, Some(CallProgress::Done(ended))) => CallDecision::Recorded(ended),
        (Effect::Pure | Effect::Keyed, Some(CallProgress::Started)) => CallDecision::Execute,
        (Effect::Unsafe, Some(CallProgress::Started)) => CallDecision::InDoubt,
    }
}

/// Returns the key of a call: stable across attempts of the call and unique among calls. It
/// contains the task id, because models reuse call ids.
pub(super) fn call_key(run: &RunId, task: &Task) -> String {
    hex::encode(Sha256::digest(format!("{run}:{}", task.id)))
}

/// Executes the call, or returns the recorded result of an earlier attempt.
pub(super) async fn call_at_most_once(
    tool: &dyn DynTool,
    call: &ToolCall,
    ctx: &ToolContext,
) -> CallResult {
    let effect = tool.effect(&call.args);
    if effect == Effect::Pure {
        return tool.call(call.args.clone(), ctx).await;
    }
    let log = &ctx.run.calls;
    match decide(effect, log.former(&ctx.key).await.map_err(call_log_error)?) {
        CallDecision::Execute => {}
        CallDecision::Recorded(ended) => return recorded(ended, call),
        CallDecision::InDoubt => return Ok(in_doubt(call)),
    }
    log.write(&ctx.key, CallProgress::Started)
        .await
        .map_err(call_log_error)?;
    fail_points::pass("call.noted");
    let ended = tool.call(call.args.clone(), ctx).await;
    fail_points::pass("call.made");
    let written = serde_json::to_value(&ended).unwrap_or_else(|error| {
        tracing::error!(tool = %call.name, call_id = %call.id, %error, "cannot serialize the result of a tool call");
        Value::Null
    });
    log.write(&ctx.key, CallProgress::Done(written))
        .await
        .map_err(call_log_error)?;
    fail_points::pass("call.written");
    ended
}

fn recorded(ended: Value, call: &ToolCall) -> CallResult {
    serde_json::from_value::<CallResult>(ended).unwrap_or_else(|error| {
        tracing::error!(tool = %call.name, call_id = %call.id, %error, "cannot read the recorded result of a tool call");
        Ok(in_doubt(call))
    })
}

fn in_doubt(call: &ToolCall) -> ToolOutput {
    tracing::warn!(tool = %call.name, call_id = %call.id, "tool call was interrupted and is not repeated");
    ToolOutput::error(format!(
        "Error: the run was interrupted while {} was at work, so its outcome is unknown. It was not called again, because that could \
         do the same thing twice. Find out what it has done before you decide how to go on.",
        call.name
    ))
}

/// Ends the run: a call must not execute without a log entry, and a call whose result is not
/// recorded must not count as ended.
fn call_log_error(error: StoreError) -> ToolError {
    ToolError::EndRun {
        name: "StorageError".to_owned(),
        message: format!("cannot record a tool call: {error}"),
    }
}

#[cfg(test)]
#[path = "at_most_once_tests.rs"]
mod tests;
