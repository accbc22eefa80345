//! Updates of subagents, in the form that viewers and the journal receive.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use deerflow_core::messages::{Message, UsageMetadata};

/// One update of a subagent. Viewers of `custom` get it as `{"type": "task_..", "task_id": ..,
/// ..}`.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentEvent {
    /// Id of the call that started it.
    pub task_id: String,
    /// Entry name of its model.
    pub model_name: String,
    /// Token usage of its model calls so far.
    pub usage: TokenCount,
    /// The update.
    pub news: SubagentUpdate,
}

/// Kind of an update of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub enum SubagentUpdate {
    /// The subagent was called. An interrupted subagent is called again and resumes.
    Started {
        /// Short description of its task.
        description: String,
    },
    /// A new answer of its model or a result of its tools.
    Said {
        /// The message.
        message: Message,
        /// Number of the message, from 1.
        index: usize,
        /// Number of messages so far.
        total: usize,
    },
    /// The subagent ended.
    Ended {
        /// Final status.
        status: SubagentStatus,
        /// Result, or the reason why there is none.
        text: String,
    },
}

/// Final status of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    /// Completed with a result.
    Completed,
    /// Failed without a result.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// The time limit was exceeded.
    TimedOut,
}

/// Token counts of several model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCount {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Total tokens as the providers count them.
    pub total_tokens: u64,
}

impl TokenCount {
    /// Adds the usage of one call.
    #[must_use]
    pub fn and(self, usage: &UsageMetadata) -> Self {
        self.plus(Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
        })
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }

    /// Reports whether all counts are zero.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl SubagentStatus {
    /// Returns the name used in messages and in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    fn event(self) -> &'static str {
        match self {
            Self::Completed => "task_completed",
            Self::Failed => "task_failed",
            Self::Cancelled => "task_cancelled",
            Self::TimedOut => "task_timed_out",
        }
    }

    /// Returns the key of the result text in the payload.
    pub fn text_key(self) -> &'static str {
        if self == Self::Completed {
            "result"
        } else {
            "error"
        }
    }
}

impl Serialize for SubagentEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let kind = match &self.news {
            SubagentUpdate::Started { .. } => "task_started",
            SubagentUpdate::Said { .. } => "task_running",
            SubagentUpdate::Ended { status, .. } => status.event(),
        };
        map.serialize_entry("type", kind)?;
        map.serialize_entry("task_id", &self.task_id)?;
        match &self.news {
            SubagentUpdate::Started { description } => {
                map.serialize_entry("description", description)?
            }
            SubagentUpdate::Said {
                message,
                index,
                total,
            } => {
                map.serialize_entry("message", message)?;
                map.serialize_entry("message_index", index)?;
                map.serialize_entry("total_messages", total)?;
            }
            SubagentUpdate::Ended { status, text } => {
                map.serialize_entry(status.text_key(), text)?
            }
        }
        if !self.usage.is_zero() {
            map.serialize_entry("usage", &self.usage)?;
        }
        map.serialize_entry("model_name", &self.model_name)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subagent_updates_have_the_wire_shape() {
        let usage = TokenCount {
            input_tokens: 3,
            output_tokens: 1,
            total_tokens: 4,
        };
        let event = |usage, news| {
            json!(SubagentEvent {
                task_id: "c1".to_owned(),
                model_name: "m".to_owned(),
                usage,
                news
            })
        };
        assert_eq!(
            event(
                TokenCount::default(),
                SubagentUpdate::Started {
                    description: "look".to_owned()
                }
            ),
            json!({"type": "task_started", "task_id": "c1", "description": "look", "model_name": "m"})
        );
        let said = event(
            usage,
            SubagentUpdate::Said {
                message: Message::ai("hi"),
                index: 2,
                total: 3,
            },
        );
        assert_eq!(
            (&said["type"], &said["message"]["content"]),
            (&json!("task_running"), &json!("hi"))
        );
        assert_eq!(
            (
                &said["message_index"],
                &said["total_messages"],
                &said["usage"]["total_tokens"]
            ),
            (&json!(2), &json!(3), &json!(4))
        );
        for (status, kind, key) in [
            (SubagentStatus::Completed, "task_completed", "result"),
            (SubagentStatus::Failed, "task_failed", "error"),
            (SubagentStatus::Cancelled, "task_cancelled", "error"),
            (SubagentStatus::TimedOut, "task_timed_out", "error"),
        ] {
            let ended = event(
                usage,
                SubagentUpdate::Ended {
                    status,
                    text: "t".to_owned(),
                },
            );
            assert_eq!((&ended["type"], &ended[key]), (&json!(kind), &json!("t")));
        }
    }
}
