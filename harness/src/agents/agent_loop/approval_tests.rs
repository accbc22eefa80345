//! Approval decisions about tool calls: every form, edits, several calls, and invalid answers.

#[path = "approval_batch_tests.rs"]
mod batch;

use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::config::GuardrailProviderConfig;
use crate::messages::Message;
use crate::middlewares::GuardrailMiddleware;
use crate::middlewares::guardrail::policy_of;
use crate::runtime::agent::{Agent, AgentError, AgentStart, StopKind};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Log of sent messages.
type Outbox = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Deserialize, JsonSchema)]
struct MailArgs {
    to: String,
}

/// Tool that records what it sends.
struct SendTool {
    name: &'static str,
    outbox: Outbox,
}

impl Tool for SendTool {
    type Args = MailArgs;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Sends."
    }

    async fn call(&self, args: MailArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let done = format!("{} {} to {}", ctx.call_id, self.name, args.to);
        self.outbox.lock().push(done.clone());
        Ok(done.into())
    }
}

/// Agent with one call per recipient, under a policy that asks for approval and always denies
/// sending to eve.
fn rig(to: &[(&'static str, &'static str)]) -> (Arc<dyn Agent>, Outbox) {
    let outbox = Outbox::default();
    let rules = json!({"default": "ask", "rules": [{"when": {"to": "eve"}, "action": "deny"}]});
    let rules: GuardrailProviderConfig =
        serde_json::from_value(json!({"use": "rules", "config": rules})).unwrap();
    let guard = GuardrailMiddleware::new(policy_of(Some(&rules)), true, None);
    let batch = Reply::Call(
        to.iter()
            .map(|(id, to)| (*id, "mail", json!({ "to": to }).to_string()))
            .collect(),
    );
    let model = ReplayModel::new([batch, Reply::Say("done")]);
    let tool = |name| SendTool {
        name,
        outbox: outbox.clone(),
    };
    (
        AgentBuilder::new(model)
            .tool(tool("mail"))
            .tool(tool("fax"))
            .middleware(guard)
            .build(),
        outbox,
    )
}

/// Open interrupts in their client-facing form.
fn open(output: &RunOutput) -> Vec<Value> {
    match output.outcome.as_ref().map(|outcome| outcome.kind.clone()) {
        Ok(StopKind::Question(open)) => open,
        other => panic!("{other:?}"),
    }
}

async fn answer(agent: &Arc<dyn Agent>, output: &RunOutput, answer: Value) -> RunOutput {
    run(
        agent,
        resume_input(output, AgentStart::Resume(answer)),
        |_| {},
    )
    .await
}

fn results(output: &RunOutput) -> Vec<String> {
    output
        .state()
        .messages()
        .iter()
        .filter(|message| message.tool_call_id().is_some())
        .map(|message| message.content.text())
        .collect()
}

fn calls_of_answer(output: &RunOutput) -> Vec<(String, Value)> {
    let answer = output
        .state()
        .messages()
        .iter()
        .find(|message| !message.tool_calls().is_empty())
        .unwrap();
    answer
        .tool_calls()
        .iter()
        .map(|call| (call.name.clone(), json!(call.args)))
        .collect()
}

#[tokio::test]
async fn approval_question_offers_every_supported_decision() {
    let (agent, _) = rig(&[("a", "ann")]);
    let interrupted = ask(&agent, "go").await;
    let question = &open(&interrupted)[0]["value"];
    assert_eq!(question["action_requests"][0]["args"], json!({"to": "ann"}));
    let review = json!([{"action_name": "mail", "allowed_decisions": ["approve", "edit", "reject", "respond"]}]);
    assert_eq!(question["review_configs"], review);
}

#[tokio::test]
async fn approval_in_any_form_executes_the_call() {
    for yes in [
        json!(true),
        json!(" YES "),
        json!("approve"),
        json!([{"type": "accept"}]),
        json!({"decisions": [{"type": "approve"}]}),
    ] {
        let (agent, outbox) = rig(&[("a", "ann")]);
        let interrupted = ask(&agent, "go").await;
        let done = answer(&agent, &interrupted, yes.clone()).await;
        assert_eq!(
            (outbox.lock().clone(), results(&done)),
            (
                vec!["a mail to ann".to_owned()],
                vec!["a mail to ann".to_owned()]
            ),
            "{yes}"
        );
    }
}

#[tokio::test]
async fn rejection_reason_reaches_the_model() {
    for no in [
        json!("no"),
        json!([{"type": "ignore"}]),
        json!({"decisions": [{"type": "reject", "message": "ann is away"}]}),
    ] {
        let (agent, outbox) = rig(&[("a", "ann")]);
        let interrupted = ask(&agent, "go").await;
        let done = answer(&agent, &interrupted, no.clone()).await;
        assert!(
            outbox.lock().is_empty() && results(&done)[0].contains("approval.rejected"),
            "{no}"
        );
        assert_eq!(
            results(&done)[0].contains("ann is away"),
            no.is_object(),
            "{no}"
        );
    }
}

#[tokio::test]
async fn invalid_decision_repeats_the_question() {
    let (agent, outbox) = rig(&[("a", "ann")]);
    let mut output = ask(&agent, "go").await;
    let id = open(&output)[0]["id"].clone();
    let unknown_tool = json!({"type": "edit", "edited_action": {"name": "telex", "args": {}}});
    for (no_decision, why) in [
        (json!(null), "null is not a decision"),
        (json!("maybe"), "\"maybe\" is not a decision"),
        (json!({"decisions": []}), "0 decisions"),
        (json!([true, true]), "2 decisions"),
        (json!({"type": "edit"}), "edited_action"),
        (unknown_tool, "\"telex\""),
    ] {
        output = answer(&agent, &output, no_decision.clone()).await;
        let questions = open(&output);
        assert_eq!(
            (questions.len(), &questions[0]["id"]),
            (1, &id),
            "{no_decision}"
        );
        assert!(
            questions[0]["value"]["error"]
                .as_str()
                .unwrap()
                .contains(why),
            "{questions:?}"
        );
        assert_eq!(
            output.last_step().next[0].interrupts,
            questions,
            "the state shows the same"
        );
        assert!(
            outbox.lock().is_empty() && results(&output).is_empty(),
            "{no_decision}"
        );
    }
    answer(&agent, &output, json!("yes")).await;
    assert_eq!(*outbox.lock(), ["a mail to ann"]);
}

#[tokio::test]
async fn edited_call_is_executed_and_stored_in_the_conversation() {
    let action = |name: &str| json!({"name": name, "args": {"to": "bob"}});
    for (edit, tool) in [
        (
            json!({"decisions": [{"type": "edit", "edited_action": action("mail")}]}),
            "mail",
        ),
        (
            json!({"decisions": [{"type": "edit", "edited_action": action("fax")}]}),
            "fax",
        ),
        (
            json!([{"type": "edit", "args": {"action": "mail", "args": {"to": "bob"}}}]),
            "mail",
        ),
        (
            json!({"type": "edit", "args": {"args": {"to": "bob"}}}),
            "mail",
        ),
    ] {
        let (agent, outbox) = rig(&[("a", "ann")]);
        let interrupted = ask(&agent, "go").await;
        let done = answer(&agent, &interrupted, edit.clone()).await;
        assert_eq!(*outbox.lock(), [format!("a {tool} to bob")], "{edit}");
        assert_eq!(
            calls_of_answer(&done),
            [(tool.to_owned(), json!({"to": "bob"}))],
            "{edit}"
        );
        let result = done
            .state()
            .messages()
            .iter()
            .find(|message| message.tool_call_id() == Some("a"))
            .unwrap();
        assert_eq!(result.name.as_deref(), Some(tool));
        let text = result.content.text();
        assert!(
            text.starts_with("Note: the user changed this call")
                && text.ends_with(&format!("a {tool} to bob")),
            "{text}"
        );
        // The position and the id of the answer do not change.
        let types: Vec<&str> = done
            .state()
            .messages()
            .iter()
            .map(Message::type_name)
            .collect();
        assert_eq!(types, ["human", "ai", "tool", "ai"]);
        assert_eq!(
            done.state().messages()[1].id,
            interrupted.state().messages()[1].id
        );
    }
}

#[tokio::test]
async fn update_subscribers_receive_the_edited_answer() {
    let (agent, _) = rig(&[("a", "ann")]);
    let interrupted = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "bob"}}});
    let done = answer(&agent, &interrupted, edit).await;
    let step = done
        .steps()
        .into_iter()
        .find(|step| step.node == "tools" && step.update.is_some())
        .unwrap();
    let written = &step.update.as_ref().unwrap().messages;
    assert_eq!(
        written.iter().map(Message::type_name).collect::<Vec<_>>(),
        ["ai", "tool"]
    );
    assert_eq!(json!(written[0].tool_calls()[0].args), json!({"to": "bob"}));
}

#[tokio::test]
async fn user_response_replaces_the_tool_result() {
    for respond in [
        json!({"decisions": [{"type": "respond", "message": "by hand"}]}),
        json!([{"type": "response", "args": "by hand"}]),
    ] {
        let (agent, outbox) = rig(&[("a", "ann")]);
        let interrupted = ask(&agent, "go").await;
        let done = answer(&agent, &interrupted, respond).await;
        assert_eq!(
            (outbox.lock().len(), results(&done)),
            (0, vec!["by hand".to_owned()])
        );
    }
}

#[tokio::test]
async fn edited_call_is_still_checked_by_the_policy() {
    let (agent, outbox) = rig(&[("a", "ann")]);
    let interrupted = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "eve"}}});
    let done = answer(&agent, &interrupted, edit).await;
    assert!(
        outbox.lock().is_empty() && results(&done)[0].contains("rule.denied"),
        "{:?}",
        results(&done)
    );
}
