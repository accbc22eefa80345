//! A whole state as JSON, put together from what its messages already carry.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::frames::to_bytes;
use crate::state::{CHANNELS, ThreadState};

/// The state, with open questions beside it under `__interrupt__`. Questions are never part of a stored state.
pub fn values_json(state: &ThreadState, questions: &[Value]) -> Bytes {
    to_bytes(&WithQuestions { state, questions })
}

struct WithQuestions<'a> {
    state: &'a ThreadState,
    questions: &'a [Value],
}

impl Serialize for WithQuestions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messages", self.state.messages())?;
        for (name, _) in CHANNELS {
            if let Some(value) = self.state.channel(name) {
                map.serialize_entry(name, value)?;
            }
        }
        if !self.questions.is_empty() {
            map.serialize_entry("__interrupt__", self.questions)?;
        }
        map.end()
    }
}
