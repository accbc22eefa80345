//! The forms in which clients name a checkpoint.

use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::runs::CheckpointRef;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::{ApiError, truncated};
use crate::extract::Issues;

/// The checkpoint that a body names.
#[derive(Debug, Clone, Copy)]
pub struct NamedCheckpoint<'a> {
    /// `checkpoint`.
    pub object: Option<&'a Map<String, Value>>,
    /// `checkpoint_id`, which takes precedence.
    pub id: Option<&'a str>,
}

/// Reads the checkpoint that a body names; a thread id in it must be `thread`.
pub fn checkpoint_of(
    named: NamedCheckpoint<'_>,
    issues: &mut Issues,
    thread: Option<&ThreadId>,
    dialect: Dialect,
) -> Result<Option<CheckpointRef>, ApiError> {
    if let Some(object) = named.object {
        let foreign = object
            .get("thread_id")
            .and_then(Value::as_str)
            .filter(|id| thread.is_none_or(|thread| thread.as_str() != *id));
        if foreign.is_some() {
            return Err(ApiError::BadRequest(
                "checkpoint thread_id does not match request thread_id".to_owned(),
            ));
        }
    }
    let inner = named
        .object
        .and_then(|object| object.get("checkpoint_id"))
        .filter(|id| !id.is_null());
    let id = match (named.id, inner) {
        (Some(id), _) => id.to_owned(),
        (None, Some(Value::String(id))) => id.clone(),
        (None, Some(other)) => {
            return Ok(issues.refuse(
                "string_type",
                "checkpoint",
                "checkpoint_id should be a valid string",
                other,
            ));
        }
        (None, None) => return Ok(None),
    };
    if dialect.is_platform() && Uuid::parse_str(&id).is_err() {
        return Err(ApiError::Unprocessable(format!(
            "Invalid checkpoint ID {:?}: must be a UUID",
            truncated(&id)
        )));
    }
    match CheckpointId::parse(id.clone()) {
        Ok(checkpoint_id) => Ok(Some(CheckpointRef { checkpoint_id })),
        Err(_) => Err(ApiError::CheckpointNotFound(truncated(&id))),
    }
}

/// Reference to an agent nested in a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedRef {
    /// `node:task id` of the calls, outermost first.
    pub namespace: String,
    /// Checkpoint of the thread; the newest that contains the agent if absent.
    pub outer: Option<CheckpointId>,
    /// Checkpoint of the agent; the newest if absent.
    pub checkpoint: Option<CheckpointId>,
}

/// Reads the nested agent that a body's `checkpoint` names; `own` is the agent's checkpoint, if the
/// body names one too.
pub fn nested_of(
    checkpoint: Option<&Map<String, Value>>,
    issues: &mut Issues,
    own: Option<&CheckpointRef>,
) -> Option<NestedRef> {
    let checkpoint = checkpoint?;
    let namespace = match checkpoint.get("checkpoint_ns") {
        None | Some(Value::Null) => return None,
        Some(Value::String(namespace)) if namespace.is_empty() => return None,
        Some(Value::String(namespace)) => namespace.clone(),
        Some(other) => {
            return issues.refuse(
                "string_type",
                "checkpoint",
                "checkpoint_ns should be a valid string",
                other,
            );
        }
    };
    let outer = checkpoint
        .get("checkpoint_map")
        .and_then(|map| map.get("")?.as_str())
        .and_then(|id| CheckpointId::parse(id).ok());
    Some(NestedRef {
        namespace,
        outer,
        checkpoint: own.map(|reference| reference.checkpoint_id.clone()),
    })
}

/// Reads the cursor of a history: an id, `{"checkpoint_id": ..}`, or either inside `configurable`.
pub fn before_cursor(value: &Value) -> Option<CheckpointId> {
    match value {
        Value::String(id) => CheckpointId::parse(id.clone()).ok(),
        Value::Object(map) => {
            let inner = map
                .get("configurable")
                .and_then(Value::as_object)
                .unwrap_or(map);
            inner
                .get("checkpoint_id")
                .and_then(Value::as_str)
                .and_then(|id| CheckpointId::parse(id).ok())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cursor_is_parsed_in_all_forms() {
        let id = CheckpointId::parse("1f1e587d-3940-6c3b-8004-ec8076329b7c").unwrap();
        for form in [
            json!(id.as_str()),
            json!({ "checkpoint_id": id }),
            json!({ "configurable": { "checkpoint_id": id } }),
        ] {
            assert_eq!(before_cursor(&form), Some(id.clone()), "{form}");
        }
        for form in [json!(1), json!({}), json!({ "checkpoint_id": "a b" })] {
            assert_eq!(before_cursor(&form), None, "{form}");
        }
    }
}
