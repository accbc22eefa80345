//! A thread as clients see it.

use deerflow_domain::threads::ThreadRecord;
use harness::clock::iso;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::input::assistant_uuid;

/// What is known of a thread besides its row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadFacts {
    /// Channel values; `None` when no run has been there yet.
    pub values: Option<Map<String, Value>>,
    /// Open questions by task.
    pub interrupts: Value,
    /// Why its last run failed.
    pub error: Option<String>,
}

/// The thread.
pub fn thread_json(thread: &ThreadRecord, facts: ThreadFacts, dialect: Dialect) -> Value {
    let interrupts = if facts.interrupts.is_object() { facts.interrupts } else { json!({}) };
    let status = dialect.thread_status(thread.status);
    let (created, updated) = (iso(thread.created_at), iso(thread.updated_at));
    match dialect {
        Dialect::DeerFlow => json!({
            "thread_id": thread.thread_id,
            "status": status,
            "created_at": created,
            "updated_at": updated,
            "metadata": thread.metadata,
            "values": facts.values.unwrap_or_default(),
            "interrupts": interrupts,
        }),
        Dialect::Platform => json!({
            "thread_id": thread.thread_id,
            "created_at": created,
            "updated_at": updated,
            "state_updated_at": updated,
            "metadata": platform_metadata(thread),
            "status": status,
            "config": {},
            "values": facts.values,
            "error": facts.error.map(|message| json!({ "error": "RunError", "message": message })),
            "interrupts": interrupts,
        }),
    }
}

/// A thread's metadata names the assistant of its first run.
fn platform_metadata(thread: &ThreadRecord) -> Map<String, Value> {
    let mut metadata = thread.metadata.clone();
    if let Some(assistant) = &thread.assistant {
        metadata.entry("graph_id").or_insert_with(|| assistant.as_str().into());
        metadata.entry("assistant_id").or_insert_with(|| assistant_uuid(assistant).to_string().into());
    }
    metadata
}
