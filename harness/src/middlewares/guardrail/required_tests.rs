//! Calls that need approval by rule.

use serde_json::{Map, Value, json};

use super::*;
use crate::config::GuardrailProviderConfig;
use crate::middlewares::guardrail::policy_of;
use crate::runtime::actor_context::ActorContext;
use crate::tools::builtins::{AskClarification, WriteTodos};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Tool with side effects.
struct Send;

impl Tool for Send {
    type Args = Map<String, Value>;

    fn name(&self) -> &str {
        "send"
    }

    fn description(&self) -> &str {
        "Sends."
    }

    async fn call(&self, _: Self::Args, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("sent"))
    }
}

async fn verdict(policy: &RequiredApproval, tool: &str) -> Result<Verdict, PolicyError> {
    let (input, actor) = (Map::new(), ActorContext::user("ann"));
    let request = GuardrailRequest {
        tool_name: tool,
        tool_input: &input,
        tool_call_id: "c",
        agent_id: None,
        thread_id: "t",
        run_id: "r",
        actor: &actor,
        is_subagent: false,
        channel_user_id: None,
        timestamp: String::new(),
    };
    policy
        .evaluate(&request)
        .await
        .map(|decision| decision.verdict)
}

fn policy(rule: ApprovalRule, provider: Option<Value>, fail_closed: bool) -> RequiredApproval {
    let inner = provider.map(|value| {
        let provider: GuardrailProviderConfig = serde_json::from_value(value).unwrap();
        policy_of(Some(&provider))
    });
    RequiredApproval {
        inner,
        fail_closed,
        rule,
        tools: ToolRegistry::new()
            .with(Send)
            .with(WriteTodos)
            .with(AskClarification),
    }
}

#[tokio::test]
async fn destructive_rule_asks_for_tools_with_effects_only() {
    let policy = policy(ApprovalRule::Destructive, None, true);
    assert_eq!(verdict(&policy, "send").await, Ok(Verdict::Ask));
    for free in ["write_todos", "ask_clarification", "task", "unknown"] {
        assert_eq!(verdict(&policy, free).await, Ok(Verdict::Allow), "{free}");
    }
}

#[tokio::test]
async fn always_rule_asks_for_all_but_questions() {
    let policy = policy(ApprovalRule::Always, None, true);
    assert_eq!(verdict(&policy, "write_todos").await, Ok(Verdict::Ask));
    assert_eq!(
        verdict(&policy, "ask_clarification").await,
        Ok(Verdict::Allow)
    );
}

#[tokio::test]
async fn denial_of_the_configured_policy_stands() {
    let denies = json!({"use": "allowlist", "config": {"denied_tools": ["send"]}});
    let policy = policy(ApprovalRule::Always, Some(denies), true);
    assert_eq!(verdict(&policy, "send").await, Ok(Verdict::Deny));
}

#[tokio::test]
async fn failed_policy_asks_only_if_it_would_allow() {
    let broken = || Some(json!({"use": "none-such"}));
    let open = policy(ApprovalRule::Always, broken(), false);
    assert_eq!(verdict(&open, "send").await, Ok(Verdict::Ask));
    let closed = policy(ApprovalRule::Always, broken(), true);
    assert!(verdict(&closed, "send").await.is_err());
}
