//! Approval that a run requires in addition to the configured policy.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError, Reason, Verdict};
use crate::middlewares::TASK;
use crate::tools::builtins::ASK_CLARIFICATION;
use crate::tools::{Effect, ToolRegistry};

/// Reason code of the question.
const REQUIRED: &str = "approval.required";

/// Tool calls that need a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRule {
    /// All calls, except questions to the user.
    Always,
    /// Calls whose repetition has an effect: they change or remove data, or act outside. The
    /// delegation of a task is none; the calls of the subagent are.
    Destructive,
}

/// Applies a policy, and requires approval of the calls that it allows and the rule names.
#[derive(Debug)]
pub(crate) struct RequiredApproval {
    /// Configured policy, if guardrails are enabled.
    pub(crate) inner: Option<Arc<dyn GuardrailPolicy>>,
    /// `true` if a call that the configured policy cannot decide is denied.
    pub(crate) fail_closed: bool,
    pub(crate) rule: ApprovalRule,
    /// Tools of the agent.
    pub(crate) tools: ToolRegistry,
}

impl RequiredApproval {
    fn applies(&self, request: &GuardrailRequest<'_>) -> bool {
        let name = request.tool_name;
        match self.rule {
            _ if name == ASK_CLARIFICATION => false,
            ApprovalRule::Always => true,
            ApprovalRule::Destructive => {
                let tool = self.tools.get(name).filter(|_| name != TASK);
                tool.is_some_and(|tool| tool.effect(request.tool_input) != Effect::Pure)
            }
        }
    }
}

#[async_trait]
impl GuardrailPolicy for RequiredApproval {
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        let decided = match &self.inner {
            Some(policy) => policy.evaluate(request).await,
            None => Ok(Decision::allow()),
        };
        let is_allowed = match &decided {
            Ok(decision) => decision.verdict == Verdict::Allow,
            Err(_) => !self.fail_closed,
        };
        if !is_allowed || !self.applies(request) {
            return decided;
        }
        Ok(Decision {
            verdict: Verdict::Ask,
            reasons: vec![Reason {
                code: REQUIRED.to_owned(),
                message: "the run requires approval of this call".to_owned(),
            }],
            policy_id: None,
        })
    }
}

#[cfg(test)]
#[path = "required_tests.rs"]
mod tests;
