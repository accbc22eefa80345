//! JSON of runs.

use std::collections::HashMap;

use harness::clock::iso;
use harness::ids::RunId;
use harness::runtime::runs::{CancelAction, RunRecord, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::requests::assistant_uuid;

/// `true` if the run was rolled back. A run that was cancelled before it began has no stop reason.
pub fn is_rolled_back(run: &RunRecord) -> bool {
    let never_began =
        run.cancel == Some(CancelAction::Rollback) && run.status == RunStatus::Interrupted;
    never_began || run.is_rolled_back()
}

/// Wire name of a run's status. A rolled-back run is `error` in DeerFlow; the platform does not
/// show it.
pub fn run_status(run: &RunRecord, dialect: Dialect) -> &'static str {
    if is_rolled_back(run) && dialect == Dialect::DeerFlow {
        RunStatus::Error.wire()
    } else {
        run.status.wire()
    }
}

/// Returns a run. One that waits states its reason in `queue_reason`.
pub fn queued_run_json(
    run: &RunRecord,
    reasons: &HashMap<RunId, &'static str>,
    dialect: Dialect,
) -> Value {
    let mut json = run_json(run, dialect);
    if let Some(reason) = reasons.get(&run.run_id) {
        json["queue_reason"] = (*reason).into();
    }
    json
}

/// Returns a run.
pub fn run_json(run: &RunRecord, dialect: Dialect) -> Value {
    let assistant = match dialect {
        Dialect::DeerFlow => run.assistant.clone(),
        // An assistant created by a user is named in the metadata, which only the server sets.
        Dialect::Platform => match run
            .metadata
            .get("assistant_id")
            .and_then(Value::as_str)
            .and_then(|id| Uuid::parse_str(id).ok())
        {
            Some(made) => made.to_string(),
            None => assistant_uuid(&run.assistant).to_string(),
        },
    };
    let totals = &run.completion;
    let mut json = json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "assistant_id": assistant,
        "status": run_status(run, dialect),
        "metadata": run.metadata,
        "kwargs": run.kwargs,
        "multitask_strategy": run.multitask.as_str(),
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
        "total_input_tokens": totals.total_input_tokens,
        "total_output_tokens": totals.total_output_tokens,
        "total_tokens": totals.total_tokens,
        "llm_call_count": totals.llm_call_count,
        "lead_agent_tokens": totals.lead_agent_tokens,
        "subagent_tokens": totals.subagent_tokens,
        "middleware_tokens": totals.middleware_tokens,
        "message_count": totals.message_count,
        "stop_reason": run.stop_reason,
        "error": run.error,
    });
    if dialect.is_platform() {
        json["langsmith_session_name"] = Value::Null;
    }
    json
}
