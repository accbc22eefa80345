//! Stream modes: the kinds of events that a client can request from a run.

use serde::{Deserialize, Serialize};

/// Kind of events that a client can stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamMode {
    /// Whole state after each step.
    Values,
    /// State update of each node.
    Updates,
    /// Accumulated messages.
    Messages,
    /// Message fragments with metadata.
    MessagesTuple,
    /// Custom payloads of tools and middlewares.
    Custom,
    /// Events in the shape of LangChain callbacks.
    Events,
    /// Starts and ends of tasks.
    Tasks,
    /// Each checkpoint.
    Checkpoints,
    /// Tasks and checkpoints in one envelope.
    Debug,
}

impl StreamMode {
    /// All modes.
    pub const ALL: [Self; 9] = [
        Self::Values,
        Self::Updates,
        Self::Messages,
        Self::MessagesTuple,
        Self::Custom,
        Self::Events,
        Self::Tasks,
        Self::Checkpoints,
        Self::Debug,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::MessagesTuple => "messages-tuple",
            Self::Custom => "custom",
            Self::Events => "events",
            Self::Tasks => "tasks",
            Self::Checkpoints => "checkpoints",
            Self::Debug => "debug",
        }
    }

    /// Parses the name on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// Set of stream modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamModes(u16);

impl StreamModes {
    /// Reports whether `mode` is in the set.
    pub fn has(self, mode: StreamMode) -> bool {
        self.0 & (1 << mode as u16) != 0
    }

    /// Iterates over the modes of the set.
    pub fn iter(self) -> impl Iterator<Item = StreamMode> {
        StreamMode::ALL
            .into_iter()
            .filter(move |mode| self.has(*mode))
    }
}

impl FromIterator<StreamMode> for StreamModes {
    fn from_iter<I: IntoIterator<Item = StreamMode>>(modes: I) -> Self {
        Self(
            modes
                .into_iter()
                .fold(0, |set, mode| set | (1 << mode as u16)),
        )
    }
}
