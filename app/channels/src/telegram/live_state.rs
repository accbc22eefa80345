//! State of a live message as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// State of a live message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(super) enum LiveState {
    /// Draft in a private chat.
    Draft {
        /// Id that this adapter chose.
        draft_id: i64,
    },
    /// Message that is edited.
    Edit {
        /// Chat, which may have a newer id than the destination.
        chat: String,
        /// Message.
        message: i64,
    },
}

impl LiveState {
    /// Decodes a stored state; `None` before the first update.
    pub(super) fn decode(state: &Value) -> Option<Self> {
        serde_json::from_value(state.clone()).ok()
    }

    /// Encodes the state.
    pub(super) fn encode(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Returns the id of an answer's draft: positive, and the same after a restart.
pub(super) fn draft_id(key: Uuid) -> i64 {
    let low = key.as_u128() & 0x7fff_ffff;
    i64::try_from(low).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_survives_storage_and_unknown_states_are_none() {
        for state in [
            LiveState::Draft { draft_id: 7 },
            LiveState::Edit {
                chat: "42".to_owned(),
                message: 9,
            },
        ] {
            assert_eq!(LiveState::decode(&state.encode()), Some(state));
        }
        assert_eq!(LiveState::decode(&Value::Null), None);
        assert_eq!(LiveState::decode(&json!({"mode": "other"})), None);
    }

    #[test]
    fn draft_id_is_positive_for_every_key() {
        assert_eq!(draft_id(Uuid::nil()), 1);
        assert_eq!(draft_id(Uuid::from_u128(u128::MAX)), 0x7fff_ffff);
        assert_eq!(draft_id(Uuid::from_u128(5)), 5);
    }
}
