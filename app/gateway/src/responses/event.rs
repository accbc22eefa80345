//! JSON of journal rows.

use harness::clock::iso;
use harness::runtime::runs::store::RunEvent;
use serde_json::{Value, json};

/// Returns a row with `content` unchanged: callers clean and complete messages before.
pub fn event_json(row: &RunEvent, content: Value) -> Value {
    let event = &row.event;
    json!({
        "thread_id": event.thread_id,
        "run_id": event.run_id,
        "user_id": event.user_id,
        "event_type": event.event_type,
        "category": event.category,
        "content": content,
        "seq": row.seq,
        "created_at": iso(event.created_at),
        "metadata": event.metadata,
    })
}
