//! Asks a policy before each tool call whether it may be made, and a person where the policy wants that.
//!
//! A call that a person has to allow stops the run with an open question. The answer is a decision in one of the forms that
//! [`tools::approval`](crate::tools::approval) reads; an answer that is none leaves the question open. `Client::resume` gives it, and
//! so does `command.resume` of a run that is sent to the gateway. Several open questions are answered by a map of their ids.

mod allowlist;
mod approval;
mod from_config;
mod policy;
mod rules;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Value, json};

pub use self::allowlist::AllowlistPolicy;
pub use self::from_config::{BrokenPolicy, policy_fault, policy_of};
pub use self::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError, Reason, Verdict};
pub use self::rules::{Rule, RulePolicy};
use super::middleware::{Hooks, Middleware};
use super::next::ToolNext;
use crate::clock::iso;
use crate::messages::ToolCall;
use crate::runtime::agent::{AgentEvent, MiddlewareAction};
use crate::tools::approval::Approval;
use crate::tools::{ToolContext, ToolControl, ToolError, ToolOutput};

const NAME: &str = "GuardrailMiddleware";
/// How long a decision may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Why a call was denied that nobody decided on.
const EVALUATOR_ERROR: &str = "oap.evaluator_error";
/// Why a call was denied that a person was asked about.
const REJECTED: &str = "approval.rejected";
/// Why a call was denied that a person should have been asked about.
const NOBODY_TO_ASK: &str = "approval.nobody_to_ask";
/// What its rows in the journal are found by.
const TAG: &str = "guardrail";

/// Denied calls become results that say why; the run goes on. Calls that a person has to allow wait for the answer. The journal has
/// each call that was not simply allowed.
#[derive(Debug, Clone)]
pub struct GuardrailMiddleware {
    policy: Arc<dyn GuardrailPolicy>,
    fail_closed: bool,
    passport: Option<String>,
}

impl GuardrailMiddleware {
    /// Asks this policy, under the agent's name there. `fail_closed` denies what it cannot decide.
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
        let asked = AssertUnwindSafe(self.policy.evaluate(&request)).catch_unwind();
        let failure = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(Ok(decision))) => return decision,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_panic)) => "the policy panicked".to_owned(),
            Err(_late) => format!("no decision within {} s", PATIENCE.as_secs()),
        };
        tracing::error!(tool = %call.name, run_id = %run.run_id, %failure, closed = self.fail_closed, "a guardrail cannot decide");
        let decision = Decision::deny(EVALUATOR_ERROR, "the policy could not be asked");
        if self.fail_closed {
            return decision;
        }
        journal(call, ctx, "allow_tool_call_after_provider_error", &decision);
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
            // No person may allow what the policy denies.
            (Verdict::Deny, _) => Ok(denied(call, ctx, decision)),
            (_, Some(Approval::Reject { message })) => {
                let said = message
                    .as_deref()
                    .map(|message| format!(": {message}"))
                    .unwrap_or_default();
                Ok(denied(
                    call,
                    ctx,
                    decision.denied_as(
                        REJECTED,
                        &format!("the user was asked and did not allow it{said}"),
                    ),
                ))
            }
            (_, Some(Approval::Respond { message })) => {
                journal(call, ctx, "answer_tool_call_for_tool", &decision);
                Ok(ToolOutput::text(message.as_str()))
            }
            (Verdict::Allow, None | Some(Approval::Approve)) => next.run(call, ctx).await,
            (Verdict::Ask, Some(Approval::Approve)) => {
                journal(call, ctx, "allow_tool_call_after_approval", &decision);
                next.run(call, ctx).await
            }
            (_, Some(Approval::Edit { .. })) => {
                journal(call, ctx, "allow_tool_call_after_edit", &decision);
                let output = next.run(call, ctx).await?;
                Ok(ToolOutput {
                    content: approval::noted(output.content),
                    ..output
                })
            }
            // Nobody would ever answer.
            (Verdict::Ask, None) if ctx.run.option_bool("non_interactive") == Some(true) => {
                Ok(denied(
                    call,
                    ctx,
                    decision.denied_as(NOBODY_TO_ASK, "a person would have to allow it"),
                ))
            }
            (Verdict::Ask, None) => {
                journal(call, ctx, "ask_before_tool_call", &decision);
                Ok(ToolOutput::only(ToolControl::Approve(approval::question(
                    call,
                    &decision.reason().message,
                ))))
            }
        }
    }
}

/// The result of a call that is not made.
fn denied(call: &ToolCall, ctx: &ToolContext, decision: Decision) -> ToolOutput {
    let reason = decision.reason();
    tracing::warn!(tool = %call.name, run_id = %ctx.run.run_id, code = %reason.code, policy = ?decision.policy_id, "a tool call was denied");
    journal(call, ctx, "deny_tool_call", &decision);
    ToolOutput::error(format!(
        "Error: the call of {} was denied by the guardrails ({}): {}. Do not repeat it; choose another way, or tell the user what you \
         would need.",
        call.name, reason.code, reason.message
    ))
}

/// Writes what became of a call to the journal. Its arguments stand there with the answer that made it; those of an edited call stand
/// here.
fn journal(call: &ToolCall, ctx: &ToolContext, action: &'static str, decision: &Decision) {
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

#[cfg(test)]
#[path = "guardrail_tests.rs"]
mod tests;
