//! The port of the place where users' agents are kept, and what is kept there.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest name.
const MAX_NAME_CHARS: usize = 64;
/// The longest text about who an agent or its user is, in characters: it stands in every request.
pub(super) const MAX_SOUL_CHARS: usize = 64 * 1024;
/// The longest description.
const MAX_DESCRIPTION_CHARS: usize = 4_000;
/// The longest list of skills or groups, and the longest name in one.
const MAX_LIST: usize = 500;
const MAX_LISTED_CHARS: usize = 128;

/// The name of a custom agent: letters, digits and hyphens, in small letters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

/// A text that names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent name {0:?} must be 1 to 64 letters, digits and hyphens")]
pub struct InvalidAgentName(pub String);

impl AgentName {
    /// Reads a name; capital letters are the same as small ones.
    pub fn parse(text: &str) -> Result<Self, InvalidAgentName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.is_empty() || text.len() > MAX_NAME_CHARS || !text.bytes().all(plain) {
            return Err(InvalidAgentName(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// Whether it is no agent's name, because its address is that of another route.
    pub fn is_reserved(&self) -> bool {
        self.0 == "check"
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an agent changes of its model's parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelOverrides {
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 1 to 200000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl ModelOverrides {
    /// Those within their bounds, as a request takes them.
    pub fn usable(&self) -> Map<String, Value> {
        let temperature = self
            .temperature
            .filter(|value| (0.0..=2.0).contains(value))
            .map(|value| ("temperature".to_owned(), value.into()));
        let max_tokens = self
            .max_tokens
            .filter(|value| (1..=200_000).contains(value))
            .map(|value| ("max_tokens".to_owned(), value.into()));
        temperature.into_iter().chain(max_tokens).collect()
    }
}

/// An agent as its user made it: the keys of its `config.yaml`, and its `SOUL.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomAgent {
    /// One line about it.
    pub description: String,
    /// The model entry it asks, unless a run names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The groups whose tools it has; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<String>>,
    /// The skills it knows; all when absent, none when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// What it changes of its model's parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<ModelOverrides>,
    /// Whether its model thinks, unless a run says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_enabled: Option<bool>,
    /// How hard, unless a run says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Keys of others, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// Who it is.
    #[serde(skip)]
    pub soul: String,
    /// Whether everybody has it, so that nobody changes it.
    #[serde(skip)]
    pub shared: bool,
}

impl CustomAgent {
    /// Whether it is of a size that can be kept and sent along with every request.
    pub fn check_size(&self) -> Result<(), CustomAgentError> {
        let texts = [
            ("soul", &self.soul, MAX_SOUL_CHARS),
            ("description", &self.description, MAX_DESCRIPTION_CHARS),
        ];
        for (what, text, most) in texts {
            check_length(what, text, most)?;
        }
        for (what, list) in [("skills", &self.skills), ("tool_groups", &self.tool_groups)] {
            let list = list.as_deref().unwrap_or_default();
            if list.len() > MAX_LIST {
                return Err(CustomAgentError::TooLarge {
                    what,
                    most: MAX_LIST,
                    unit: "entries",
                });
            }
            list.iter()
                .try_for_each(|listed| check_length(what, listed, MAX_LISTED_CHARS))?;
        }
        Ok(())
    }
}

/// Whether `text` has at most so many characters.
pub(super) fn check_length(
    what: &'static str,
    text: &str,
    most: usize,
) -> Result<(), CustomAgentError> {
    if text.len() > most && text.chars().count() > most {
        return Err(CustomAgentError::TooLarge {
            what,
            most,
            unit: "characters",
        });
    }
    Ok(())
}

/// Why agents cannot be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomAgentError {
    /// What shall be kept is too much.
    #[error("{what} has more than {most} {unit}")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// How much it may have.
        most: usize,
        /// Of what.
        unit: &'static str,
    },
    /// The user has as many as anybody can have.
    #[error("there are {0} agents already; remove one first")]
    TooMany(usize),
    /// Others kept changing it meanwhile.
    #[error("the agent {0} is being changed by others")]
    Contended(String),
    /// What is kept is no agent.
    #[error("the agent {name} cannot be read: {reason}")]
    Unreadable {
        /// Which.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The place does not work.
    #[error("agents cannot be kept at the moment: {0}")]
    Unavailable(String),
}

/// Keeps users' agents. Promises: nobody sees another's; what was saved is read as it was, also the keys of others; an agent is
/// seen whole or not at all; of changes at the same time none is lost.
#[async_trait]
pub trait CustomAgents: Send + Sync + fmt::Debug {
    /// The user's agent of this name, or the one everybody has.
    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError>;

    /// What [`get`](Self::get) gives for every name there is, by name. One that cannot be read is left out.
    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError>;

    /// Puts `new` in the place of the user's own agent `held`; `None` is no agent. Where the user has something else by now, nothing
    /// changes and the answer is false.
    async fn swap(
        &self,
        user: &str,
        name: &AgentName,
        held: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError>;

    /// Who the agent without a name is to this user; empty when nobody said.
    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError>;

    /// Says who the agent without a name is to this user.
    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError>;

    /// What the user says of themselves to every agent; empty when they said nothing.
    async fn profile(&self, user: &str) -> Result<String, CustomAgentError>;

    /// Keeps what the user says of themselves.
    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError>;
}
