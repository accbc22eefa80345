//! JSON of the size of a thread's stored states.

use deerflow_domain::threads::{StoredSize, ThreadStorage};
use harness::ids::ThreadId;
use serde_json::{Map, Value, json};

/// Returns the size of a thread's stored states.
pub fn storage_json(thread: &ThreadId, storage: &ThreadStorage) -> Value {
    let values = storage.channels.values().fold(
        StoredSize::default(),
        |StoredSize { count, bytes }, channel| StoredSize {
            count: count + channel.count,
            bytes: bytes + channel.bytes,
        },
    );
    let by_channel: Map<String, Value> = storage
        .channels
        .iter()
        .map(|(name, StoredSize { count, bytes })| {
            let channel = json!({ "versions": count, "bytes": bytes });
            (name.clone(), channel)
        })
        .collect();
    let size = |StoredSize { count, bytes }| json!({ "count": count, "bytes": bytes });
    json!({
        "thread_id": thread,
        "total_bytes": storage.checkpoints.bytes + values.bytes + storage.pending_tasks.bytes,
        "checkpoints": size(storage.checkpoints),
        "channel_values": { "count": values.count, "bytes": values.bytes, "by_channel": by_channel },
        "pending_writes": size(storage.pending_tasks),
    })
}
