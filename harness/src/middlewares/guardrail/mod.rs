//! Asks somebody before each tool call whether it may be made.

mod allowlist;
mod from_config;
mod policy;
mod rules;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;

pub use self::allowlist::AllowlistPolicy;
pub use self::from_config::{BrokenPolicy, policy_of};
pub use self::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError, Reason};
pub use self::rules::RulePolicy;
use super::middleware::{Hooks, Middleware};
use super::next::ToolNext;
use crate::clock::iso;
use crate::messages::ToolCall;
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// How long a decision may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Why a call was denied that nobody decided on.
const EVALUATOR_ERROR: &str = "oap.evaluator_error";

/// Denied calls become results that say why; the run goes on.
#[derive(Debug, Clone)]
pub struct GuardrailMiddleware {
    policy: Arc<dyn GuardrailPolicy>,
    fail_closed: bool,
    passport: Option<String>,
}

impl GuardrailMiddleware {
    /// Asks this policy, under the agent's name there. `fail_closed` denies what it cannot decide.
    pub fn new(policy: Arc<dyn GuardrailPolicy>, fail_closed: bool, passport: Option<String>) -> Self {
        Self { policy, fail_closed, passport }
    }

    async fn decide(&self, call: &ToolCall, ctx: &ToolContext) -> Decision {
        let run = &ctx.run;
        let request = GuardrailRequest {
            tool_name: &call.name,
            tool_input: &call.args,
            tool_call_id: &call.id,
            agent_id: self.passport.as_deref(),
            thread_id: run.thread_id.as_str(),
            run_id: run.run_id.as_str(),
            actor: &run.actor,
            is_subagent: !run.namespace.is_empty(),
            channel_user_id: run.option_str("channel_user_id"),
            timestamp: iso(run.clock.now()),
        };
        let asked = AssertUnwindSafe(self.policy.evaluate(&request)).catch_unwind();
        let failure = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(Ok(decision))) => return decision,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_panic)) => "the policy panicked".to_owned(),
            Err(_late) => format!("no decision within {} s", PATIENCE.as_secs()),
        };
        tracing::error!(tool = %call.name, run_id = %run.run_id, %failure, closed = self.fail_closed, "a guardrail cannot decide");
        if self.fail_closed { Decision::deny(EVALUATOR_ERROR, "the policy could not be asked") } else { Decision::allow() }
    }
}

#[async_trait]
impl Middleware for GuardrailMiddleware {
    fn name(&self) -> &str {
        "GuardrailMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_TOOL
    }

    async fn wrap_tool_call(&self, call: &ToolCall, ctx: &ToolContext, next: ToolNext<'_>) -> Result<ToolOutput, ToolError> {
        let decision = self.decide(call, ctx).await;
        if decision.allow {
            return next.run(call, ctx).await;
        }
        let reason = decision.reason();
        tracing::warn!(tool = %call.name, run_id = %ctx.run.run_id, code = %reason.code, policy = ?decision.policy_id, "a tool call was denied");
        Ok(ToolOutput::error(format!(
            "Error: the call of {} was denied by the guardrails ({}): {}. Do not repeat it; choose another way, or tell the user what you \
             would need.",
            call.name, reason.code, reason.message
        )))
    }
}

#[cfg(test)]
#[path = "guardrail_tests.rs"]
mod tests;
