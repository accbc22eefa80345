//! Reasons why no agent executes a node.

use crate::finding::{Finding, FindingCode, listed};

/// Reason why no agent executes a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// The node names no agent.
    #[error("the node names no agent; set `agentRef` or `agentId`")]
    Missing,
    /// No agent definition has this id.
    #[error("no agent definition has the id `{agent}`; {}", names("the ids are", .known))]
    AgentNotFound {
        /// Id that the node names.
        agent: String,
        /// Ids of the definitions.
        known: Vec<String>,
    },
    /// Neither an asset nor an agent definition has this id.
    #[error(
        "neither an agent file nor an agent definition has the id `{agent}`; {}",
        names("the ids are", .known)
    )]
    RefNotFound {
        /// Id that the node names.
        agent: String,
        /// Ids of assets and definitions.
        known: Vec<String>,
    },
    /// The asset has errors.
    #[error("the agent file of `{agent}` has errors: {problems}")]
    RefInvalid {
        /// Id that the node names.
        agent: String,
        /// Messages of the errors.
        problems: String,
    },
    /// No adapter of this kind is registered.
    #[error(
        "no adapter of kind `{kind}` is registered, which agent `{agent}` needs; {}",
        names("the kinds are", .known)
    )]
    AdapterNotFound {
        /// Agent.
        agent: String,
        /// Kind as it is written.
        kind: String,
        /// Registered kinds.
        known: Vec<String>,
    },
    /// The adapter implements another major version of the contract.
    #[error(
        "adapter `{kind}` of agent `{agent}` implements contract {version}; this host needs {}",
        crate::adapter::CONTRACT_VERSION
    )]
    AdapterIncompatible {
        /// Agent.
        agent: String,
        /// Canonical kind.
        kind: String,
        /// Version of its contract.
        version: String,
    },
}

impl BindingError {
    /// Returns the code.
    pub fn code(&self) -> FindingCode {
        match self {
            Self::Missing => FindingCode::AgentBindingMissing,
            Self::AgentNotFound { .. } => FindingCode::AgentNotFound,
            Self::RefNotFound { .. } => FindingCode::AgentRefNotFound,
            Self::RefInvalid { .. } => FindingCode::AgentRefInvalid,
            Self::AdapterNotFound { .. } => FindingCode::AdapterNotFound,
            Self::AdapterIncompatible { .. } => FindingCode::AdapterIncompatible,
        }
    }

    /// Returns the agent that could not be bound.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::Missing => None,
            Self::AgentNotFound { agent, .. }
            | Self::RefNotFound { agent, .. }
            | Self::RefInvalid { agent, .. }
            | Self::AdapterNotFound { agent, .. }
            | Self::AdapterIncompatible { agent, .. } => Some(agent),
        }
    }

    /// Returns the finding without a place.
    pub fn finding(&self) -> Finding {
        let mut finding = Finding::new(self.code(), self.to_string());
        finding.agent_id = self.agent().map(str::to_owned);
        finding
    }
}

/// Lists names after words that introduce them.
fn names(intro: &str, names: &[String]) -> String {
    if names.is_empty() {
        return "there are none".to_owned();
    }
    format!("{intro} {}", listed(names.iter().map(String::as_str)))
}
