//! Reducers: how each channel combines its value with the write of a step. Pure functions.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::channels::{Channels, Reducer};

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

/// Accepted write to a channel.
#[derive(Debug)]
pub(super) enum Reduction {
    /// New value; `None` leaves the channel without one.
    Value(Option<Value>),
    /// Entries to be merged into the current value, which need not be copied for it.
    Keys(Map<String, Value>),
}

impl Reduction {
    /// Checks a write to `channel` and reduces it.
    pub(super) fn of(
        channel: &str,
        channels: &Channels,
        current: Option<&Value>,
        new: Value,
    ) -> Result<Self, StateError> {
        match (channels.reducer(channel), new) {
            (Some(Reducer::MergeKeys), Value::Object(entries)) => Ok(Self::Keys(entries)),
            (_, new) => reduce(channel, channels, current.cloned(), new).map(Self::Value),
        }
    }

    /// Returns the new value of the channel.
    pub(super) fn applied_to(self, current: Option<Value>) -> Option<Value> {
        match self {
            Self::Value(value) => value,
            Self::Keys(entries) => merge_keys(current, entries),
        }
    }
}

/// Returns the new value of `channel` by the reducer that it has among `channels`; `None` leaves
/// the channel without one.
fn reduce(
    channel: &str,
    channels: &Channels,
    current: Option<Value>,
    new: Value,
) -> Result<Option<Value>, StateError> {
    let reducer = channels
        .reducer(channel)
        .ok_or_else(|| StateError::UnknownChannel(channel.to_owned()))?;
    let wrong = |expected| StateError::WrongShape {
        channel: channel.to_owned(),
        expected,
    };
    match (reducer, new) {
        (Reducer::LastWrite | Reducer::MergeKeys, Value::Null) => Ok(None),
        (Reducer::LastWrite, new) => Ok(Some(new)),
        (_, Value::Null) => Ok(current),
        (Reducer::ReplaceUnlessNull, new) => Ok(Some(new)),
        (Reducer::Union, Value::Array(items)) => Ok(Some(union(current, items))),
        (Reducer::Union, _) => Err(wrong("a list or null")),
        (Reducer::MergeMap, Value::Object(entries)) => Ok(Some(merge(current, entries))),
        (Reducer::MergeMap, _) => Err(wrong("an object or null")),
        (Reducer::MergeKeys, Value::Object(entries)) => Ok(merge_keys(current, entries)),
        (Reducer::MergeKeys, _) => Err(wrong("an object or null")),
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

/// Merges entries and removes null ones. An empty result leaves the channel without a value.
fn merge_keys(current: Option<Value>, entries: Map<String, Value>) -> Option<Value> {
    let mut map = match current {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    for (key, value) in entries {
        if value.is_null() {
            map.shift_remove(&key);
        } else {
            map.insert(key, value);
        }
    }
    (!map.is_empty()).then_some(Value::Object(map))
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
