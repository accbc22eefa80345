//! Questions to the user in the frames of states and updates.

use bytes::Bytes;
use harness::runtime::encoding::to_bytes;
use serde_json::{Map, Value};

/// Field of a frame that has the open questions.
const FIELD: &str = "__interrupt__";

/// Splits a state into the state alone and its questions, if it has the field.
pub(super) fn split_state(data: Bytes) -> Result<(Bytes, Option<Vec<Value>>), serde_json::Error> {
    // A state is large, so it is parsed only if it may have the field.
    if !may_have_questions(&data) {
        return Ok((data, None));
    }
    let mut state: Map<String, Value> = serde_json::from_slice(&data)?;
    match state.shift_remove(FIELD) {
        Some(Value::Array(questions)) => Ok((to_bytes(&state), Some(questions))),
        Some(_) => Ok((to_bytes(&state), Some(Vec::new()))),
        None => Ok((data, None)),
    }
}

/// Returns the questions of an update that consists of them.
pub(super) fn of_update(data: &[u8]) -> Result<Option<Vec<Value>>, serde_json::Error> {
    if !may_have_questions(data) {
        return Ok(None);
    }
    let mut update: Map<String, Value> = serde_json::from_slice(data)?;
    Ok(match update.shift_remove(FIELD) {
        Some(Value::Array(questions)) => Some(questions),
        _ => None,
    })
}

fn may_have_questions(data: &[u8]) -> bool {
    let name = FIELD.as_bytes();
    data.windows(name.len()).any(|window| window == name)
}
