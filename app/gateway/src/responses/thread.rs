//! JSON of threads.

use deerflow_domain::threads::{LastEnd, ThreadContent, ThreadRecord};
use harness::clock::iso;
use harness::runtime::runs::{LOST_ERROR, RunStatus, StopReason};
use harness::runtime::threads::{ThreadView, pending_interrupts};
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::requests::assistant_uuid;

/// Details of a thread in addition to its row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadFacts {
    /// Channel values; `None` before the first run.
    pub values: Option<Map<String, Value>>,
    /// Interrupts by task.
    pub interrupts: Map<String, Value>,
    /// Error of the last run, `{"error", "message"}`; null if it succeeded.
    pub error: Value,
}

impl ThreadFacts {
    /// Details for lists: the title of the row.
    pub fn title_of(thread: &ThreadRecord) -> Self {
        let title = thread
            .title
            .as_ref()
            .map(|title| ("title".to_owned(), Value::from(title.as_str())));
        Self {
            values: Some(title.into_iter().collect()),
            ..Self::default()
        }
    }

    /// Details from a thread's content, as the platform shows them. The caller inserts the values.
    pub fn of(content: &ThreadContent) -> Self {
        let state = content.state.as_ref();
        Self {
            values: state.map(|_| Map::new()),
            interrupts: state
                .map(|state| pending_interrupts(&state.meta.next))
                .unwrap_or_default(),
            error: content
                .last_end
                .as_ref()
                .map(end_error_json)
                .unwrap_or_default(),
        }
    }
}

/// Returns the error of a run's end, or null.
pub fn end_error_json(end: &LastEnd) -> Value {
    let name = match end.status {
        RunStatus::Error if end.stop_reason == Some(StopReason::RolledBack) => "UserRollback",
        RunStatus::Error => end.error_name.as_deref().unwrap_or(LOST_ERROR),
        RunStatus::Timeout => "TimeoutError",
        RunStatus::Interrupted => "UserInterrupt",
        _ => return Value::Null,
    };
    json!({ "error": name, "message": end.error.as_deref().unwrap_or("the run was cancelled") })
}

/// Returns a thread for DeerFlow's clients.
pub fn thread_view(thread: &ThreadRecord, facts: ThreadFacts) -> ThreadView {
    ThreadView {
        thread_id: thread.thread_id.clone(),
        status: thread.status,
        created_at: iso(thread.created_at),
        updated_at: iso(thread.updated_at),
        metadata: thread.metadata.clone(),
        values: facts.values.unwrap_or_default(),
        interrupts: facts.interrupts,
    }
}

/// Returns a thread in the client's dialect.
pub fn thread_json(thread: &ThreadRecord, facts: ThreadFacts, dialect: Dialect) -> Value {
    if dialect == Dialect::DeerFlow {
        return json!(thread_view(thread, facts));
    }
    let status = dialect.thread_status(thread.status);
    let (created, updated) = (iso(thread.created_at), iso(thread.updated_at));
    let mut json = json!({
        "thread_id": thread.thread_id,
        "created_at": created,
        "updated_at": updated,
        "state_updated_at": iso(thread.state_updated_at),
        "metadata": platform_metadata(thread),
        "status": status,
        "config": {},
        "values": facts.values,
    });
    // These fields are absent before the first run.
    if thread.assistant.is_some() || !json["values"].is_null() {
        json["config"] = json!({ "configurable": {} });
        json["error"] = facts.error;
        json["interrupts"] = facts.interrupts.into();
    }
    json
}

/// Returns the thread's time to live, if it expires.
pub fn ttl_json(thread: &ThreadRecord) -> Option<Value> {
    let (ttl, end) = (thread.ttl?, thread.expires_at()?);
    let minutes = ttl.after.num_milliseconds() as f64 / 60_000.0;
    Some(json!({ "strategy": ttl.then.as_str(), "ttl_minutes": minutes, "expires_at": iso(end) }))
}

/// Adds the graph and the assistant of the first run to a thread's metadata.
fn platform_metadata(thread: &ThreadRecord) -> Map<String, Value> {
    let mut metadata = thread.metadata.clone();
    if let Some(graph) = &thread.assistant {
        let own = || assistant_uuid(graph).to_string();
        metadata
            .entry("graph_id")
            .or_insert_with(|| graph.as_str().into());
        metadata
            .entry("assistant_id")
            .or_insert_with(|| thread.assistant_id.clone().unwrap_or_else(own).into());
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failed_runs_have_an_error() {
        let named = |status, stop_reason: Option<StopReason>, name: Option<&str>| {
            let (error, error_name) = (Some("why".to_owned()), name.map(str::to_owned));
            end_error_json(&LastEnd {
                status,
                error,
                error_name,
                stop_reason,
            })
        };
        let end = |status, stop_reason: Option<StopReason>| named(status, stop_reason, None);
        assert_eq!(end(RunStatus::Success, None), Value::Null);
        assert_eq!(
            end(RunStatus::Error, None),
            json!({ "error": "RunError", "message": "why" })
        );
        assert_eq!(
            named(RunStatus::Error, None, Some("ValueError")),
            json!({ "error": "ValueError", "message": "why" })
        );
        assert_eq!(
            end(RunStatus::Error, Some(StopReason::RolledBack))["error"],
            "UserRollback"
        );
        assert_eq!(end(RunStatus::Interrupted, None)["error"], "UserInterrupt");
    }
}
