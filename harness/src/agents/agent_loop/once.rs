//! Makes a call no more often than its tool allows, also when the run was interrupted in the middle of it.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::ids::RunId;
use crate::messages::ToolCall;
use crate::runtime::agent::Task;
use crate::runtime::fail_points;
use crate::runtime::runs::store::{CallProgress, StoreError};
use crate::tools::{DynTool, Effect, ToolContext, ToolError, ToolOutput};

/// How a call ended, as it is written down.
type Ended = Result<ToolOutput, ToolError>;

/// What becomes of a call.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// It is made.
    Make,
    /// It has ended before, with this.
    Recorded(Value),
    /// It had begun, and nobody knows whether it took effect.
    InDoubt,
}

/// Decides by how far a former attempt came.
fn verdict(effect: Effect, former: Option<CallProgress>) -> Verdict {
    match (effect, former) {
        (_, None) => Verdict::Make,
        (_, Some(CallProgress::Done(ended))) => Verdict::Recorded(ended),
        (Effect::Pure | Effect::Keyed, Some(CallProgress::Started)) => Verdict::Make,
        (Effect::Unsafe, Some(CallProgress::Started)) => Verdict::InDoubt,
    }
}

/// The key of a call: the same whenever this call of the run is made, and no other call's. The task's id stands for the call's,
/// which models use more than once.
pub(super) fn key_of(run: &RunId, task: &Task) -> String {
    hex::encode(Sha256::digest(format!("{run}:{}", task.id)))
}

/// Makes the call, or gives what a former attempt knows of it.
pub(super) async fn make(tool: &dyn DynTool, call: &ToolCall, ctx: &ToolContext) -> Ended {
    let effect = tool.effect(&call.args);
    if effect == Effect::Pure {
        return tool.call(call.args.clone(), ctx).await;
    }
    let log = &ctx.run.calls;
    match verdict(effect, log.former(&ctx.key).await.map_err(unwritten)?) {
        Verdict::Make => {}
        Verdict::Recorded(ended) => return recorded(ended, call),
        Verdict::InDoubt => return Ok(in_doubt(call)),
    }
    log.write(&ctx.key, CallProgress::Started)
        .await
        .map_err(unwritten)?;
    fail_points::pass("call.noted");
    let ended = tool.call(call.args.clone(), ctx).await;
    fail_points::pass("call.made");
    let written = serde_json::to_value(&ended).unwrap_or_else(|error| {
        tracing::error!(tool = %call.name, call_id = %call.id, %error, "the result of a call cannot be written as json");
        Value::Null
    });
    log.write(&ctx.key, CallProgress::Done(written))
        .await
        .map_err(unwritten)?;
    fail_points::pass("call.written");
    ended
}

fn recorded(ended: Value, call: &ToolCall) -> Ended {
    serde_json::from_value::<Ended>(ended).unwrap_or_else(|error| {
        tracing::error!(tool = %call.name, call_id = %call.id, %error, "the recorded result of a call cannot be read");
        Ok(in_doubt(call))
    })
}

fn in_doubt(call: &ToolCall) -> ToolOutput {
    tracing::warn!(tool = %call.name, call_id = %call.id, "a call was cut off and is not repeated");
    ToolOutput::error(format!(
        "Error: the run was interrupted while {} was at work, so its outcome is unknown. It was not called again, because that could \
         do the same thing twice. Find out what it has done before you decide how to go on.",
        call.name
    ))
}

/// Without its entry a call must not be made, and one whose end is not written down must not be taken for ended.
fn unwritten(error: StoreError) -> ToolError {
    ToolError::EndRun {
        name: "StorageError".to_owned(),
        message: format!("a tool call cannot be written down: {error}"),
    }
}

#[cfg(test)]
#[path = "once_tests.rs"]
mod tests;
