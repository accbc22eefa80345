//! Tests of guardrails: permitted calls, the results of denied calls, and failing policies.

use serde_json::{Value, json};

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{
    ReplayModel, Reply, RunOutput, ask, calls, fresh, resume_input, run, state_of,
};
use crate::config::GuardrailProviderConfig;
use crate::messages::Message;
use crate::runtime::agent::AgentStart;
use crate::tools::builtins::WriteTodos;

fn provider(kind: &str, config: Value) -> Arc<dyn GuardrailPolicy> {
    let section: GuardrailProviderConfig =
        serde_json::from_value(json!({"use": kind, "config": config})).unwrap();
    policy_of(Some(&section))
}

/// Actions of the guardrails on calls, with their reasons, as recorded in the journal.
fn recorded_actions(output: &RunOutput) -> Vec<(&'static str, String)> {
    let recorded_actions = |event: &AgentEvent| match event {
        AgentEvent::MiddlewareAction(done) => {
            Some((done.action, done.changes["code"].as_str()?.to_owned()))
        }
        _ => None,
    };
    output.events.iter().filter_map(recorded_actions).collect()
}

/// Returns the result of a call of `write_todos` under this policy.
async fn result(policy: Arc<dyn GuardrailPolicy>, fail_closed: bool) -> String {
    let model = ReplayModel::new([
        calls([("c", "write_todos", json!({"todos": []}))]),
        Reply::Say("done"),
    ]);
    let guard = GuardrailMiddleware::new(policy, fail_closed, None);
    let agent = AgentBuilder::new(model.clone())
        .tool(WriteTodos)
        .middleware(guard)
        .build();
    let output = ask(&agent, "go").await;
    assert_eq!(
        (model.requests().len(), output.outcome.is_ok()),
        (2, true),
        "the run continues"
    );
    output.state().messages()[2].content.text()
}

#[tokio::test]
async fn lists_decide_by_name_and_denials_win() {
    for (config, passes) in [
        (json!({"allowed_tools": null}), true),
        (json!({"allowed_tools": ["write_todos"]}), true),
        (json!({"allowed_tools": []}), false),
        (
            json!({"allowed_tools": ["write_todos"], "denied_tools": ["write_todos"]}),
            false,
        ),
    ] {
        let text = result(
            provider(
                "deerflow.guardrails.builtin:AllowlistProvider",
                config.clone(),
            ),
            true,
        )
        .await;
        assert_eq!(
            text.starts_with("The todo list"),
            passes,
            "{config}: {text}"
        );
        assert_eq!(
            text.contains("write_todos was denied by the guardrails (oap.tool_not_allowed)"),
            !passes,
            "{text}"
        );
    }
}

#[tokio::test]
async fn first_matching_rule_decides() {
    let deny = json!({"tools": ["write_*"], "users": ["ann"], "when": {"todos": "[[]]*"}, "action": "deny"});
    let denied = json!({"tools": ["write_*"], "when": {"todos": "[]"}, "action": "deny", "code": "no.lists", "reason": "no lists here"});
    for (config, wanted) in [
        (json!({"rules": [deny.clone()]}), "The todo list"),
        (
            json!({"rules": [denied.clone()]}),
            "Error: the call of write_todos was denied by the guardrails (no.lists): no lists here.",
        ),
        (
            json!({"rules": [{"action": "allow"}, denied]}),
            "The todo list",
        ),
        (
            json!({"default": "deny"}),
            "Error: the call of write_todos was denied by the guardrails (rule.default_deny)",
        ),
        (
            json!({"default": "deny", "rules": [{"users": ["bob"], "action": "allow"}]}),
            "Error",
        ),
    ] {
        let text = result(provider("rules", config.clone()), true).await;
        assert!(text.starts_with(wanted), "{config}: {text}");
    }
}

#[tokio::test]
async fn call_needing_approval_waits_and_rejection_denies_it() {
    let call = calls([("c", "write_todos", json!({"todos": []}))]);
    let guard =
        || GuardrailMiddleware::new(provider("rules", json!({"default": "ask"})), true, None);
    for (answer, wanted, action, code) in [
        (
            json!(true),
            "The todo list",
            "allow_tool_call_after_approval",
            "rule.ask",
        ),
        (
            json!("no"),
            "Error: the call of write_todos was denied by the guardrails (approval.rejected)",
            "deny_tool_call",
            "approval.rejected",
        ),
    ] {
        let model = ReplayModel::new([call.clone(), Reply::Say("done")]);
        let agent = AgentBuilder::new(model)
            .tool(WriteTodos)
            .middleware(guard())
            .build();
        let result = ask(&agent, "go").await;
        let question = &result.last_step().next[0].interrupts[0]["value"];
        assert_eq!(question["action_requests"][0]["args"], json!({"todos": []}));
        assert_eq!(
            (result.state().messages().len(), recorded_actions(&result)),
            (2, vec![("ask_before_tool_call", "rule.ask".to_owned())])
        );
        let done = run(
            &agent,
            resume_input(&result, AgentStart::Resume(answer)),
            |_| {},
        )
        .await;
        assert!(
            done.state().messages()[2]
                .content
                .text()
                .starts_with(wanted),
            "{:?}",
            done.transcript()
        );
        assert_eq!(recorded_actions(&done), [(action, code.to_owned())]);
    }
    let agent = AgentBuilder::new(ReplayModel::new([call, Reply::Say("done")]))
        .tool(WriteTodos)
        .middleware(guard())
        .build();
    let options = json!({"non_interactive": true})
        .as_object()
        .unwrap()
        .clone();
    let alone = run(&agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.options = Arc::new(options)
    })
    .await;
    assert_eq!(
        recorded_actions(&alone),
        [("deny_tool_call", "approval.nobody_to_ask".to_owned())]
    );
}

#[tokio::test]
async fn failing_policy_follows_fail_closed() {
    for policy in [
        provider("oap", json!({})),
        provider("rules", json!({"rules": [{"action": "maybe"}]})),
        provider("rules", json!({"defualt": "deny"})),
        provider("rules", json!({})),
        provider("allowlist", json!({"denied": ["write_todos"]})),
        provider("allowlist", json!({})),
        policy_of(None),
        Arc::new(Panics),
    ] {
        assert!(
            result(policy.clone(), true)
                .await
                .contains("oap.evaluator_error")
        );
        assert!(result(policy, false).await.starts_with("The todo list"));
    }
}

#[tokio::test(start_paused = true)]
async fn policy_timeout_counts_as_failure() {
    assert!(
        result(Arc::new(HangingPolicy), true)
            .await
            .contains("oap.evaluator_error")
    );
}

#[derive(Debug)]
struct Panics;

#[async_trait]
impl GuardrailPolicy for Panics {
    async fn evaluate(&self, _request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        panic!("policy")
    }
}

#[derive(Debug)]
struct HangingPolicy;

#[async_trait]
impl GuardrailPolicy for HangingPolicy {
    async fn evaluate(&self, _request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        std::future::pending().await
    }
}
