//! Port for policies that decide on tool calls.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::runtime::actor_context::ActorContext;

/// Default reason code of a denial.
const DENIED: &str = "oap.denied";

/// Tool call to decide on.
#[derive(Debug, Clone, Serialize)]
pub struct GuardrailRequest<'a> {
    /// Name of the tool.
    pub tool_name: &'a str,
    /// Arguments of the call.
    pub tool_input: &'a Map<String, Value>,
    /// Id of the call.
    pub tool_call_id: &'a str,
    /// Name of the agent for the policy.
    pub agent_id: Option<&'a str>,
    /// Id of the thread.
    pub thread_id: &'a str,
    /// Id of the run.
    pub run_id: &'a str,
    /// User on whose behalf the run executes.
    #[serde(flatten)]
    pub actor: &'a ActorContext,
    /// `true` if a subagent makes the call.
    pub is_subagent: bool,
    /// Id of the sender in a chat channel.
    pub channel_user_id: Option<&'a str>,
    /// Current time.
    pub timestamp: String,
}

/// Reason of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Code, for programs.
    pub code: String,
    /// Text, for the model.
    pub message: String,
}

/// Verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call is permitted.
    #[default]
    Allow,
    /// The call needs a user's approval.
    Ask,
    /// The call is denied.
    Deny,
}

/// Verdict on a call, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Reasons of the verdict; the first one is reported.
    pub reasons: Vec<Reason>,
    /// Id of the policy that decided.
    pub policy_id: Option<String>,
}

impl Decision {
    /// Permits the call.
    pub fn allow() -> Self {
        Self {
            verdict: Verdict::Allow,
            reasons: Vec::new(),
            policy_id: None,
        }
    }

    /// Denies the call for this reason.
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

    /// Returns a denial by the same policy for another reason.
    pub(super) fn denied_as(self, code: &str, message: &str) -> Self {
        Self {
            policy_id: self.policy_id,
            ..Self::deny(code, message)
        }
    }

    /// Returns the reason to report.
    pub fn reason(&self) -> Reason {
        let default_reason = || Reason {
            code: DENIED.to_owned(),
            message: "the policy does not allow it".to_owned(),
        };
        self.reasons.first().cloned().unwrap_or_else(default_reason)
    }
}

/// Error of a policy that cannot decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub String);

/// Decides on tool calls. Contract: equal requests get equal decisions, and an evaluation has no
/// side effects.
///
/// ```
/// use async_trait::async_trait;
/// use deerflow_harness::middlewares::guardrail::{
///     Decision, GuardrailPolicy, GuardrailRequest, PolicyError,
/// };
///
/// /// Denies all tool calls of subagents.
/// #[derive(Debug)]
/// struct LeadAgentOnly;
///
/// #[async_trait]
/// impl GuardrailPolicy for LeadAgentOnly {
///     async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
///         Ok(match request.is_subagent {
///             true => Decision::deny("subagent", "subagents may not call tools"),
///             false => Decision::allow(),
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait GuardrailPolicy: Send + Sync + fmt::Debug {
    /// Decides whether this call may be made. An error means that the policy cannot decide.
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError>;
}
