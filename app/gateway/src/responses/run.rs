//! JSON of runs.

use std::borrow::Cow;
use std::collections::HashMap;

use harness::clock::iso;
use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::{CancelAction, RequestEcho, RunRecord, RunStatus};
use serde::Serialize;
use serde_json::{Map, Value};
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

/// Run on the wire.
#[derive(Debug, Serialize)]
pub struct RunView<'a> {
    run_id: &'a RunId,
    thread_id: &'a ThreadId,
    assistant_id: Cow<'a, str>,
    status: &'static str,
    metadata: &'a Map<String, Value>,
    kwargs: &'a RequestEcho,
    multitask_strategy: &'static str,
    created_at: String,
    updated_at: String,
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_tokens: u64,
    llm_call_count: u64,
    lead_agent_tokens: u64,
    subagent_tokens: u64,
    middleware_tokens: u64,
    message_count: u64,
    stop_reason: Option<&'a str>,
    error: Option<&'a str>,
    /// Always null, and only in the platform's dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    langsmith_session_name: Option<()>,
    /// Reason why the run waits, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_reason: Option<&'static str>,
}

impl<'a> RunView<'a> {
    /// Returns a run without the reason why it waits.
    pub fn new(run: &'a RunRecord, dialect: Dialect) -> Self {
        let assistant = match dialect {
            Dialect::DeerFlow => Cow::from(&run.assistant),
            // An assistant created by a user is named in the metadata, which only the server sets.
            Dialect::Platform => match run
                .metadata
                .get("assistant_id")
                .and_then(Value::as_str)
                .and_then(|id| Uuid::parse_str(id).ok())
            {
                Some(made) => made.to_string().into(),
                None => assistant_uuid(&run.assistant).to_string().into(),
            },
        };
        let totals = &run.completion;
        Self {
            run_id: &run.run_id,
            thread_id: &run.thread_id,
            assistant_id: assistant,
            status: run_status(run, dialect),
            metadata: &run.metadata,
            kwargs: &run.kwargs,
            multitask_strategy: run.multitask.as_str(),
            created_at: iso(run.created_at),
            updated_at: iso(run.updated_at),
            total_input_tokens: totals.total_input_tokens,
            total_output_tokens: totals.total_output_tokens,
            total_tokens: totals.total_tokens,
            llm_call_count: totals.llm_call_count,
            lead_agent_tokens: totals.lead_agent_tokens,
            subagent_tokens: totals.subagent_tokens,
            middleware_tokens: totals.middleware_tokens,
            message_count: totals.message_count,
            stop_reason: run.stop_reason.as_deref(),
            error: run.error.as_deref(),
            langsmith_session_name: dialect.is_platform().then_some(()),
            queue_reason: None,
        }
    }

    /// Returns a run with the reason why it waits, if `reasons` has one.
    pub fn queued(
        run: &'a RunRecord,
        reasons: &HashMap<RunId, &'static str>,
        dialect: Dialect,
    ) -> Self {
        Self {
            queue_reason: reasons.get(&run.run_id).copied(),
            ..Self::new(run, dialect)
        }
    }
}
