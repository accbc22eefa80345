//! Port of the custom agent store, and the records in it.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum length of a name.
const MAX_NAME_CHARS: usize = 64;
/// Maximum length of a soul or a user profile, in characters; both are part of every request.
pub(super) const MAX_SOUL_CHARS: usize = 64 * 1024;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_000;
/// Maximum number of entries in a list of skills or groups, and maximum length of one entry, in
/// characters.
const MAX_LIST_ENTRIES: usize = 500;
const MAX_LIST_ENTRY_CHARS: usize = 128;

/// Beginning of the names of flows as assistants.
const FLOW_PREFIX: &str = "flow-";

/// Name of a custom agent: ASCII letters, digits and hyphens, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

/// Text that is no valid agent name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent name {0:?} must be 1 to 64 letters, digits and hyphens")]
pub struct InvalidAgentName(pub String);

impl AgentName {
    /// Parses a name and converts it to lower case.
    pub fn parse(text: &str) -> Result<Self, InvalidAgentName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.is_empty() || text.len() > MAX_NAME_CHARS || !text.bytes().all(plain) {
            return Err(InvalidAgentName(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// `true` if no agent may have this name, because a route already uses it as a path.
    pub fn is_reserved(&self) -> bool {
        self.0 == "check"
    }

    /// `true` if no new agent may have this name, because it begins like those of flows.
    pub fn is_flow_name(&self) -> bool {
        self.0.starts_with(FLOW_PREFIX)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Model parameters that an agent overrides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelOverrides {
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum number of output tokens, 1 to 200000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl ModelOverrides {
    /// Returns the overrides that are within their bounds, as request parameters.
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

/// Definition of a custom agent: the keys of its `config.yaml`, and its `SOUL.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomAgent {
    /// One-line description.
    pub description: String,
    /// Default model entry; a run may select another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Groups of tools that the agent has; all groups when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<String>>,
    /// Skills that the agent may use; all when absent, none when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// Overridden model parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<ModelOverrides>,
    /// Default for thinking; a run may override it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_enabled: Option<bool>,
    /// Default reasoning effort; a run may override it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Unknown keys, preserved as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// Text that describes the agent's character, from `SOUL.md`.
    #[serde(skip)]
    pub soul: String,
    /// `true` if all users have this agent, so that no user may change it.
    #[serde(skip)]
    pub shared: bool,
}

impl CustomAgent {
    /// Validates the sizes of all texts and lists.
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
            if list.len() > MAX_LIST_ENTRIES {
                return Err(CustomAgentError::TooLarge {
                    what,
                    most: MAX_LIST_ENTRIES,
                    unit: "entries",
                });
            }
            list.iter()
                .try_for_each(|listed| check_length(what, listed, MAX_LIST_ENTRY_CHARS))?;
        }
        Ok(())
    }
}

/// Validates that `text` has no more than `most` characters.
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

/// Errors of reading and storing custom agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomAgentError {
    /// A text or list exceeds its size limit.
    #[error("{what} has more than {most} {unit}")]
    TooLarge {
        /// Field that is too large.
        what: &'static str,
        /// Maximum size.
        most: usize,
        /// Unit of the maximum.
        unit: &'static str,
    },
    /// The user has the maximum number of agents.
    #[error("there are {0} agents already; remove one first")]
    TooMany(usize),
    /// Every attempt conflicted with a concurrent change.
    #[error("the agent {0} is being changed concurrently, try again")]
    Contended(String),
    /// The stored agent cannot be parsed.
    #[error("the agent {name} cannot be read: {reason}")]
    Unreadable {
        /// Name of the agent.
        name: String,
        /// Parse error.
        reason: String,
    },
    /// The store failed.
    #[error("the store of custom agents is not available: {0}")]
    Unavailable(String),
}

/// Store of custom agents. Guarantees: no agent of another user is returned; a stored agent is read
/// back unchanged, including unknown keys; a partly written agent is never returned; concurrent
/// changes are not lost.
///
/// ```
/// use deerflow_harness::agents::custom::{
///     AgentName, CustomAgent, CustomAgents, InMemoryCustomAgents,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (agents, name) = (InMemoryCustomAgents::default(), AgentName::parse("writer")?);
/// let writer = CustomAgent { description: "Writes.".to_owned(), ..CustomAgent::default() };
/// assert!(agents.swap("ann", &name, None, Some(&writer)).await?);
/// // The user has this agent now, so it cannot be created again.
/// assert!(!agents.swap("ann", &name, None, Some(&writer)).await?);
/// assert_eq!(agents.get("bob", &name).await?, None);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait CustomAgents: Send + Sync + fmt::Debug {
    /// Returns a number that differs after each change, made through this store, of what the user
    /// sees. If the store counts its changes, an agent that was resolved for a run serves later
    /// runs for up to a second, as long as the number stays; a change that does not alter it is
    /// seen after that. `None`, the default, means that every run reads the store.
    fn version(&self, _user: &str) -> Option<u64> {
        None
    }

    /// Returns the user's agent of this name, or the shared agent of this name.
    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError>;

    /// Returns the agents that [`get`](Self::get) returns, for all existing names in order. Omits
    /// unreadable agents.
    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError>;

    /// Replaces the user's own agent if it equals `current`; `None` means no agent. Returns `false`
    /// without a change if the stored agent differs.
    async fn swap(
        &self,
        user: &str,
        name: &AgentName,
        current: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError>;

    /// Returns the soul of the unnamed agent for this user; empty if none is stored.
    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError>;

    /// Stores the soul of the unnamed agent for this user.
    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError>;

    /// Returns the user's profile, which every agent reads; empty if none is stored.
    async fn profile(&self, user: &str) -> Result<String, CustomAgentError>;

    /// Stores the user's profile.
    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError>;
}
