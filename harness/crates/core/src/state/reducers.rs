//! Reducers: how each channel combines its value with the write of a step. Pure functions.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Reducer of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reducer {
    /// The newest write wins; two parallel writes in one step are an error.
    LastWrite,
    /// Null has no effect; a list is joined as an ordered union without duplicates.
    Union,
    /// Null has no effect; anything else replaces.
    ReplaceUnlessNull,
    /// Null has no effect; an empty map clears; otherwise maps are merged, new entries win.
    MergeMap,
    /// Null and the same sandbox have no effect; another sandbox is an error.
    SameSandbox,
    /// Null has no effect; names of the same tool catalog are joined, those of another catalog
    /// replace the old ones.
    Promoted,
}

/// Channels of every thread except `messages`, with their reducers, in the order of `values`
/// frames.
pub const CHANNELS: &[(&str, Reducer)] = &[
    ("title", Reducer::LastWrite),
    ("thread_data", Reducer::LastWrite),
    ("uploaded_files", Reducer::LastWrite),
    ("artifacts", Reducer::Union),
    ("todos", Reducer::ReplaceUnlessNull),
    ("viewed_images", Reducer::MergeMap),
    ("sandbox", Reducer::SameSandbox),
    ("goal", Reducer::LastWrite),
    ("promoted", Reducer::Promoted),
    ("summary_text", Reducer::LastWrite),
    ("summary_cut", Reducer::LastWrite),
    ("background_tasks", Reducer::LastWrite),
    ("created_agent_name", Reducer::ReplaceUnlessNull),
];

/// Returns the reducer of `channel`, if it is known.
pub fn reducer_of(channel: &str) -> Option<Reducer> {
    CHANNELS
        .iter()
        .find(|(name, _)| *name == channel)
        .map(|(_, reducer)| *reducer)
}

/// Reason why an update cannot be reduced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Unknown channel.
    #[error("unknown thread-state field {0:?}")]
    UnknownChannel(String),
    /// Value of the wrong type.
    #[error("state field {channel:?} must be {expected}")]
    WrongShape {
        /// Name of the channel.
        channel: String,
        /// Expected type.
        expected: &'static str,
    },
    /// Two different sandboxes in one thread.
    #[error("the thread already has sandbox {held:?}, it cannot take {new:?}")]
    SandboxConflict {
        /// Sandbox of the thread.
        held: String,
        /// Sandbox that was written.
        new: String,
    },
    /// Parallel writes to a channel that accepts only one.
    #[error("several parallel writes to state field {0:?}, which keeps only one")]
    ParallelWrites(String),
    /// More messages than a thread may contain.
    #[error("the thread would hold {count} messages; it may hold {limit}")]
    TooManyMessages {
        /// Number of messages after the update.
        count: usize,
        /// Configured limit.
        limit: usize,
    },
    /// A remove message for an id that does not exist.
    #[error("cannot remove message {0:?}: the thread has no such message")]
    UnknownMessage(String),
}

/// Returns the new value of `channel`; `None` leaves the channel without one.
pub(super) fn reduce(
    channel: &str,
    current: Option<Value>,
    new: Value,
) -> Result<Option<Value>, StateError> {
    let reducer =
        reducer_of(channel).ok_or_else(|| StateError::UnknownChannel(channel.to_owned()))?;
    let wrong = |expected| StateError::WrongShape {
        channel: channel.to_owned(),
        expected,
    };
    match (reducer, new) {
        (Reducer::LastWrite, Value::Null) => Ok(None),
        (Reducer::LastWrite, new) => Ok(Some(new)),
        (_, Value::Null) => Ok(current),
        (Reducer::ReplaceUnlessNull, new) => Ok(Some(new)),
        (Reducer::Union, Value::Array(items)) => Ok(Some(union(current, items))),
        (Reducer::Union, _) => Err(wrong("a list or null")),
        (Reducer::MergeMap, Value::Object(entries)) => Ok(Some(merge(current, entries))),
        (Reducer::MergeMap, _) => Err(wrong("an object or null")),
        (Reducer::SameSandbox, Value::Object(entry)) => same_sandbox(current, entry),
        (Reducer::Promoted, Value::Object(entry)) => Ok(Some(promoted(current, entry))),
        (Reducer::Promoted, _) => Err(wrong("an object or null")),
        (Reducer::SameSandbox, _) => Err(wrong("an object or null")),
    }
}

fn union(current: Option<Value>, items: Vec<Value>) -> Value {
    let current = match current {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    // An existing list is not changed, even if an older version stored duplicates in it.
    let mut known: HashSet<Value> = current.iter().cloned().collect();
    let new = items
        .into_iter()
        .filter(|item| known.insert(item.clone()))
        .collect::<Vec<_>>();
    Value::Array(current.into_iter().chain(new).collect())
}

fn merge(current: Option<Value>, entries: Map<String, Value>) -> Value {
    if entries.is_empty() {
        return Value::Object(entries);
    }
    let mut map = match current {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    map.extend(entries);
    Value::Object(map)
}

fn promoted(current: Option<Value>, mut entry: Map<String, Value>) -> Value {
    let Some(Value::Object(mut current)) = current else {
        return Value::Object(entry);
    };
    if entry.is_empty() || entry.get("catalog_hash") != current.get("catalog_hash") {
        return Value::Object(if entry.is_empty() { current } else { entry });
    }
    let new = match entry.shift_remove("names") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let names = union(current.shift_remove("names"), new);
    current.insert("names".to_owned(), names);
    Value::Object(current)
}

fn same_sandbox(
    current: Option<Value>,
    entry: Map<String, Value>,
) -> Result<Option<Value>, StateError> {
    let id = |value: &Value| {
        value
            .get("sandbox_id")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let new = Value::Object(entry);
    match (current.as_ref().and_then(id), id(&new)) {
        (Some(held), Some(new)) if held != new => Err(StateError::SandboxConflict { held, new }),
        _ => Ok(Some(new)),
    }
}
