//! How each channel combines what it holds with what a step writes. Pure functions, tested as tables.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The rule of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reducer {
    /// The newest write stands; two parallel writes in one step are an error.
    LastWrite,
    /// Null keeps; a list joins as an ordered union without duplicates.
    Union,
    /// Null keeps; anything else replaces.
    ReplaceUnlessNull,
    /// Null keeps; an empty map clears; otherwise merged, new entries win.
    MergeMap,
    /// Null keeps; equal sandboxes keep; a different one is a conflict.
    SameSandbox,
    /// Null keeps; names of the same catalog join, those of another replace.
    Promoted,
}

/// The channels every thread has besides `messages`, with their rules. Order is the order of `values` frames.
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

/// The rule of `channel`, if it is known.
pub fn reducer_of(channel: &str) -> Option<Reducer> {
    CHANNELS
        .iter()
        .find(|(name, _)| *name == channel)
        .map(|(_, reducer)| *reducer)
}

/// Why an update cannot be reduced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A channel no thread has.
    #[error("unknown thread-state field {0:?}")]
    UnknownChannel(String),
    /// A value of the wrong shape.
    #[error("state field {channel:?} must be {expected}")]
    WrongShape {
        /// The channel.
        channel: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Two sandboxes in one thread.
    #[error("the thread already has sandbox {held:?}, it cannot take {new:?}")]
    SandboxConflict {
        /// The sandbox the thread holds.
        held: String,
        /// The one that was written.
        new: String,
    },
    /// Parallel writes where only one can stand.
    #[error("several parallel writes to state field {0:?}, which keeps only one")]
    ParallelWrites(String),
    /// More messages than a thread may hold.
    #[error("the thread would hold {count} messages; it may hold {limit}")]
    TooManyMessages {
        /// The number of messages after the update.
        count: usize,
        /// The configured limit.
        limit: usize,
    },
    /// A remove message for an id that is not there.
    #[error("cannot remove message {0:?}: the thread has no such message")]
    UnknownMessage(String),
}

/// The new value of `channel`; `None` means the channel is left without one.
pub(super) fn reduce(
    channel: &str,
    held: Option<Value>,
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
        (_, Value::Null) => Ok(held),
        (Reducer::ReplaceUnlessNull, new) => Ok(Some(new)),
        (Reducer::Union, Value::Array(items)) => Ok(Some(union(held, items))),
        (Reducer::Union, _) => Err(wrong("a list or null")),
        (Reducer::MergeMap, Value::Object(entries)) => Ok(Some(merge(held, entries))),
        (Reducer::MergeMap, _) => Err(wrong("an object or null")),
        (Reducer::SameSandbox, Value::Object(entry)) => same_sandbox(held, entry),
        (Reducer::Promoted, Value::Object(entry)) => Ok(Some(promoted(held, entry))),
        (Reducer::Promoted, _) => Err(wrong("an object or null")),
        (Reducer::SameSandbox, _) => Err(wrong("an object or null")),
    }
}

fn union(held: Option<Value>, items: Vec<Value>) -> Value {
    let held = match held {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    // A held list stays as it is, even where an older version left a value in it twice.
    let mut known: HashSet<Value> = held.iter().cloned().collect();
    let new = items
        .into_iter()
        .filter(|item| known.insert(item.clone()))
        .collect::<Vec<_>>();
    Value::Array(held.into_iter().chain(new).collect())
}

fn merge(held: Option<Value>, entries: Map<String, Value>) -> Value {
    if entries.is_empty() {
        return Value::Object(entries);
    }
    let mut map = match held {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    map.extend(entries);
    Value::Object(map)
}

fn promoted(held: Option<Value>, mut entry: Map<String, Value>) -> Value {
    let Some(Value::Object(mut held)) = held else {
        return Value::Object(entry);
    };
    if entry.is_empty() || entry.get("catalog_hash") != held.get("catalog_hash") {
        return Value::Object(if entry.is_empty() { held } else { entry });
    }
    let new = match entry.shift_remove("names") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let names = union(held.shift_remove("names"), new);
    held.insert("names".to_owned(), names);
    Value::Object(held)
}

fn same_sandbox(
    held: Option<Value>,
    entry: Map<String, Value>,
) -> Result<Option<Value>, StateError> {
    let id = |value: &Value| {
        value
            .get("sandbox_id")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let new = Value::Object(entry);
    match (held.as_ref().and_then(id), id(&new)) {
        (Some(held), Some(new)) if held != new => Err(StateError::SandboxConflict { held, new }),
        _ => Ok(Some(new)),
    }
}
