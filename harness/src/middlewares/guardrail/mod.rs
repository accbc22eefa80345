//! Evaluates a policy before each tool call, and requests the user's approval if the policy
//! requires it.
//!
//! A call that needs approval interrupts the run. The answer is a decision in one of the forms that
//! [`tools::approval`](crate::tools::approval) accepts; an invalid answer leaves the question open.
//! `Client::resume` passes the answer, and so does `command.resume` of a run that is created
//! through the gateway. Several open questions are answered with a map from their ids.

mod allowlist;
mod approval;
mod from_config;
mod policy;
mod required;
mod rules;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Value, json};

pub use self::allowlist::AllowlistPolicy;
pub use self::from_config::{InvalidPolicy, policy_config_error, policy_of};
pub use self::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError, Reason, Verdict};
pub use self::required::ApprovalRule;
pub(crate) use self::required::RequiredApproval;
pub use self::rules::{Rule, RulePolicy};
use super::hooks::Hooks;
use super::middleware::{Middleware, ToolNext};
use crate::clock::iso;
use crate::messages::ToolCall;
use crate::runtime::agent::{AgentEvent, MiddlewareAction};
use crate::tools::approval::Approval;
use crate::tools::{ToolContext, ToolControl, ToolError, ToolOutput};

const NAME: &str = "GuardrailMiddleware";
/// Timeout of a decision.
const POLICY_TIMEOUT: Duration = Duration::from_secs(10);
/// Reason code if the policy failed.
const EVALUATOR_ERROR: &str = "oap.evaluator_error";
/// Reason code if the user rejected the call.
const REJECTED: &str = "approval.rejected";
/// Reason code if approval is needed and no user is available.
const NO_APPROVER: &str = "approval.nobody_to_ask";
/// Tag of the guardrail's rows in the journal.
const TAG: &str = "guardrail";

/// Applies a policy to tool calls.
///
/// A denied call gets a result with the reason, and the run continues. A call that needs approval
/// waits for the answer. Every call that is not simply allowed is recorded in the journal.
#[derive(Debug, Clone)]
pub struct GuardrailMiddleware {
    policy: Arc<dyn GuardrailPolicy>,
    fail_closed: bool,
    passport: Option<String>,
}

impl GuardrailMiddleware {
    /// Creates the middleware. `passport` is the agent's name for the policy; `fail_closed` denies
    /// calls that the policy cannot decide.
    pub fn new(
        policy: Arc<dyn GuardrailPolicy>,
        fail_closed: bool,
        passport: Option<String>,
    ) -> Self {
        Self {
            policy,
            fail_closed,
            passport,
        }
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
        let evaluation = AssertUnwindSafe(self.policy.evaluate(&request)).catch_unwind();
        let failure = match tokio::time::timeout(POLICY_TIMEOUT, evaluation).await {
            Ok(Ok(Ok(decision))) => return decision,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_panic)) => "the policy panicked".to_owned(),
            Err(_late) => format!("no decision within {} s", POLICY_TIMEOUT.as_secs()),
        };
        tracing::error!(tool = %call.name, run_id = %run.run_id, %failure, closed = self.fail_closed, "guardrail policy failed");
        let decision = Decision::deny(EVALUATOR_ERROR, "the policy could not be asked");
        if self.fail_closed {
            return decision;
        }
        record_decision(call, ctx, "allow_tool_call_after_provider_error", &decision);
        Decision::allow()
    }
}

#[async_trait]
impl Middleware for GuardrailMiddleware {
    fn name(&self) -> &str {
        NAME
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_TOOL
    }

    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let decision = self.decide(call, ctx).await;
        match (decision.verdict, &ctx.approval) {
            // An approval cannot override a denial of the policy.
            (Verdict::Deny, _) => Ok(denied(call, ctx, decision)),
            (_, Some(Approval::Reject { message })) => {
                let suffix = message
                    .as_deref()
                    .map(|message| format!(": {message}"))
                    .unwrap_or_default();
                Ok(denied(
                    call,
                    ctx,
                    decision.denied_as(
                        REJECTED,
                        &format!("the user was asked and did not allow it{suffix}"),
                    ),
                ))
            }
            (_, Some(Approval::Respond { message })) => {
                record_decision(call, ctx, "answer_tool_call_for_tool", &decision);
                Ok(ToolOutput::text(message.as_str()))
            }
            (Verdict::Allow, None | Some(Approval::Approve)) => next.run(call, ctx).await,
            (Verdict::Ask, Some(Approval::Approve)) => {
                record_decision(call, ctx, "allow_tool_call_after_approval", &decision);
                next.run(call, ctx).await
            }
            (_, Some(Approval::Edit { .. })) => {
                record_decision(call, ctx, "allow_tool_call_after_edit", &decision);
                let output = next.run(call, ctx).await?;
                Ok(ToolOutput {
                    content: approval::with_edit_note(output.content),
                    ..output
                })
            }
            // No user is available to answer.
            (Verdict::Ask, None) if ctx.run.option_bool("non_interactive") == Some(true) => {
                Ok(denied(
                    call,
                    ctx,
                    decision.denied_as(NO_APPROVER, "a person would have to allow it"),
                ))
            }
            (Verdict::Ask, None) => {
                record_decision(call, ctx, "ask_before_tool_call", &decision);
                Ok(ToolOutput::only(ToolControl::Approve(approval::question(
                    call,
                    &decision.reason().message,
                ))))
            }
        }
    }
}

/// Builds the result of a denied call.
fn denied(call: &ToolCall, ctx: &ToolContext, decision: Decision) -> ToolOutput {
    let reason = decision.reason();
    tracing::warn!(tool = %call.name, run_id = %ctx.run.run_id, code = %reason.code, policy = ?decision.policy_id, "guardrail denied a tool call");
    record_decision(call, ctx, "deny_tool_call", &decision);
    ToolOutput::error(format!(
        "Error: the call of {} was denied by the guardrails ({}): {}. Do not repeat it; choose another way, or tell the user what you \
         would need.",
        call.name, reason.code, reason.message
    ))
}

/// Records the decision about a call in the journal. The arguments are in the journal already, in
/// the answer that contains the call; only those of an edited call are recorded here.
fn record_decision(call: &ToolCall, ctx: &ToolContext, action: &'static str, decision: &Decision) {
    let mut changes: Value = json!({
        "tool_name": call.name,
        "tool_call_id": call.id,
        "code": decision.reason().code,
        "policy_id": decision.policy_id,
        "is_subagent": !ctx.run.namespace.is_empty(),
    });
    if matches!(ctx.approval, Some(Approval::Edit { .. })) {
        changes["args"] = json!(call.args);
    }
    let name = NAME.to_owned();
    ctx.run
        .sink
        .emit(AgentEvent::MiddlewareAction(Box::new(MiddlewareAction {
            tag: TAG,
            name,
            hook: "wrap_tool_call",
            action,
            changes,
        })));
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::middlewares::guardrail::InvalidPolicy as BrokenPolicy;
#[doc(hidden)]
pub use crate::middlewares::guardrail::policy_config_error as policy_fault;

#[cfg(test)]
#[path = "guardrail_tests.rs"]
mod tests;
