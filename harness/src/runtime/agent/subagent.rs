//! What a run tells of the agents that its agent sets to work: the shape that viewers and the journal know.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::messages::{Message, UsageMetadata};

/// One piece of news of a subagent. Viewers of `custom` get it as `{"type": "task_..", "task_id": .., ..}`.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentEvent {
    /// The call that set it to work.
    pub task_id: String,
    /// The entry of its model.
    pub model_name: String,
    /// What its model calls have cost so far.
    pub usage: TokenCount,
    /// What happened.
    pub news: SubagentNews,
}

/// What happened to a subagent.
#[derive(Debug, Clone, PartialEq)]
pub enum SubagentNews {
    /// It was called. One that was interrupted is called again and goes on.
    Started {
        /// What it is to do, in a few words.
        description: String,
    },
    /// An answer of its model or a result of its tools is there.
    Said {
        /// The message.
        message: Message,
        /// Which of its messages, from 1.
        index: usize,
        /// How many there are by now.
        total: usize,
    },
    /// It ended.
    Ended {
        /// How.
        status: SubagentStatus,
        /// Its result, or why there is none.
        text: String,
    },
}

/// How a subagent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    /// With a result.
    Completed,
    /// Without one.
    Failed,
    /// Its run was stopped.
    Cancelled,
    /// It took too long.
    TimedOut,
}

/// Tokens of several model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCount {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens in all, as the providers count them.
    pub total_tokens: u64,
}

impl TokenCount {
    /// With one call more.
    #[must_use]
    pub fn and(self, usage: &UsageMetadata) -> Self {
        self.plus(Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
        })
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }

    /// Whether nothing was counted.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl SubagentStatus {
    /// The word in messages and in the journal.
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

    /// Under which key its text stands.
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
            SubagentNews::Started { .. } => "task_started",
            SubagentNews::Said { .. } => "task_running",
            SubagentNews::Ended { status, .. } => status.event(),
        };
        map.serialize_entry("type", kind)?;
        map.serialize_entry("task_id", &self.task_id)?;
        match &self.news {
            SubagentNews::Started { description } => {
                map.serialize_entry("description", description)?
            }
            SubagentNews::Said {
                message,
                index,
                total,
            } => {
                map.serialize_entry("message", message)?;
                map.serialize_entry("message_index", index)?;
                map.serialize_entry("total_messages", total)?;
            }
            SubagentNews::Ended { status, text } => map.serialize_entry(status.text_key(), text)?,
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
    fn news_have_the_shape_that_clients_know() {
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
                SubagentNews::Started {
                    description: "look".to_owned()
                }
            ),
            json!({"type": "task_started", "task_id": "c1", "description": "look", "model_name": "m"})
        );
        let said = event(
            usage,
            SubagentNews::Said {
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
                SubagentNews::Ended {
                    status,
                    text: "t".to_owned(),
                },
            );
            assert_eq!((&ended["type"], &ended[key]), (&json!(kind), &json!("t")));
        }
    }
}
