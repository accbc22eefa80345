//! The port of those who decide on tool calls.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::runtime::actor_context::ActorContext;

/// Why a call is denied when nothing else is said.
const DENIED: &str = "oap.denied";

/// What is to be decided on.
#[derive(Debug, Clone, Serialize)]
pub struct GuardrailRequest<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// Its arguments.
    pub tool_input: &'a Map<String, Value>,
    /// The call.
    pub tool_call_id: &'a str,
    /// The agent's name to the policy.
    pub agent_id: Option<&'a str>,
    /// The thread.
    pub thread_id: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// For whom.
    #[serde(flatten)]
    pub actor: &'a ActorContext,
    /// Whether an agent inside of a call asks.
    pub is_subagent: bool,
    /// Who writes in a channel.
    pub channel_user_id: Option<&'a str>,
    /// Now.
    pub timestamp: String,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For programs.
    pub code: String,
    /// For the model.
    pub message: String,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may.
    #[default]
    Allow,
    /// If a person says so.
    Ask,
    /// It may not.
    Deny,
}

/// Whether the call may be made, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub verdict: Verdict,
    /// Why; the first is told.
    pub reasons: Vec<Reason>,
    /// Which policy decided.
    pub policy_id: Option<String>,
}

impl Decision {
    /// The call may be made.
    pub fn allow() -> Self {
        Self {
            verdict: Verdict::Allow,
            reasons: Vec::new(),
            policy_id: None,
        }
    }

    /// It may not, for this reason.
    pub fn deny(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Deny,
            reasons: vec![Reason {
                code: code.into(),
                message: message.into(),
            }],
            policy_id: None,
        }
    }

    /// The same policy's no, for another reason.
    pub(super) fn denied_as(self, code: &str, message: &str) -> Self {
        Self {
            policy_id: self.policy_id,
            ..Self::deny(code, message)
        }
    }

    /// The reason that is told.
    pub fn reason(&self) -> Reason {
        let unsaid = || Reason {
            code: DENIED.to_owned(),
            message: "the policy does not allow it".to_owned(),
        };
        self.reasons.first().cloned().unwrap_or_else(unsaid)
    }
}

/// A policy that cannot decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub String);

/// Decides on tool calls. Promises: the same request gives the same decision, and asking changes nothing.
#[async_trait]
pub trait GuardrailPolicy: Send + Sync + fmt::Debug {
    /// Whether this call may be made. An error says that nobody can tell.
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError>;
}
