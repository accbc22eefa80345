//! JSON of runs, threads, assistants, snapshots, journal rows and feedback for clients. Pure.

mod assistant;
mod chunks;
mod cron;
pub mod documented;
mod event;
mod feedback;
mod item;
mod json_list;
mod large_json;
mod run;
mod scheduled_task;
mod schemas;
mod snapshot;
mod storage;
mod thread;
mod view;

pub use assistant::{assistant_json, version_json};
pub use chunks::{MIN_CHUNK, next_chunk};
pub use cron::cron_json;
pub use event::event_json;
pub use feedback::{feedback_json, feedback_short_json};
pub use item::{hit_json, item_json};
pub use json_list::JsonList;
pub(crate) use json_list::NEXT;
pub use large_json::{LargeJson, SharingJson, body_of_chunks};
pub use run::{RunView, is_rolled_back, run_status};
pub use scheduled_task::{task_json, task_run_json};
pub use schemas::{channel_schemas, context_schema, state_schema};
pub use snapshot::{
    StateView, checkpoint_json, empty_state_json, history_entry_json, state_json, values_json,
};
pub use storage::storage_json;
pub use thread::{ThreadFacts, end_error_json, thread_json, thread_view, ttl_json};
pub use view::{RawValues, RawView};

use serde_json::{Map, Value};

/// Returns an object with only the selected fields; an empty selection means all.
pub fn select(value: Value, fields: &[String]) -> Value {
    match value {
        Value::Object(map) if !fields.is_empty() => Value::Object(
            map.into_iter()
                .filter(|(key, _)| fields.contains(key))
                .collect::<Map<_, _>>(),
        ),
        other => other,
    }
}
