//! Decisions of a person about calls: in every form, edits included, of several calls, and answers that are none.

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

/// What was sent, by call.
type Book = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Deserialize, JsonSchema)]
struct Letter {
    to: String,
}

/// Sends, under its name.
struct Send {
    name: &'static str,
    book: Book,
}

impl Tool for Send {
    type Args = Letter;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Sends."
    }

    async fn call(&self, args: Letter, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let done = format!("{} {} to {}", ctx.call_id, self.name, args.to);
        self.book.lock().push(done.clone());
        Ok(done.into())
    }
}

/// An agent that wants to send to each of these, under a policy that asks first and never allows to send to eve.
fn scene(to: &[(&'static str, &'static str)]) -> (Arc<dyn Agent>, Book) {
    let book = Book::default();
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
    let tool = |name| Send {
        name,
        book: book.clone(),
    };
    (
        AgentBuilder::new(model)
            .tool(tool("mail"))
            .tool(tool("fax"))
            .middleware(guard)
            .build(),
        book,
    )
}

/// What is asked, as clients see it.
fn open(said: &Said) -> Vec<Value> {
    match said.outcome.as_ref().map(|outcome| outcome.kind.clone()) {
        Ok(StopKind::Question(open)) => open,
        other => panic!("{other:?}"),
    }
}

async fn answer(agent: &Arc<dyn Agent>, said: &Said, answer: Value) -> Said {
    run(agent, go_on(said, AgentStart::Resume(answer)), |_| {}).await
}

fn results(said: &Said) -> Vec<String> {
    said.state()
        .messages()
        .iter()
        .filter(|message| message.tool_call_id().is_some())
        .map(|message| message.content.text())
        .collect()
}

fn calls_of_answer(said: &Said) -> Vec<(String, Value)> {
    let answer = said
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
async fn a_question_offers_every_decision_that_is_understood() {
    let (agent, _) = scene(&[("a", "ann")]);
    let asked = ask(&agent, "go").await;
    let question = &open(&asked)[0]["value"];
    assert_eq!(question["action_requests"][0]["args"], json!({"to": "ann"}));
    let review = json!([{"action_name": "mail", "allowed_decisions": ["approve", "edit", "reject", "respond"]}]);
    assert_eq!(question["review_configs"], review);
}

#[tokio::test]
async fn a_yes_in_any_form_makes_the_call() {
    for yes in [
        json!(true),
        json!(" YES "),
        json!("approve"),
        json!([{"type": "accept"}]),
        json!({"decisions": [{"type": "approve"}]}),
    ] {
        let (agent, book) = scene(&[("a", "ann")]);
        let asked = ask(&agent, "go").await;
        let done = answer(&agent, &asked, yes.clone()).await;
        assert_eq!(
            (book.lock().clone(), results(&done)),
            (
                vec!["a mail to ann".to_owned()],
                vec!["a mail to ann".to_owned()]
            ),
            "{yes}"
        );
    }
}

#[tokio::test]
async fn a_no_carries_its_reason_to_the_model() {
    for no in [
        json!("no"),
        json!([{"type": "ignore"}]),
        json!({"decisions": [{"type": "reject", "message": "ann is away"}]}),
    ] {
        let (agent, book) = scene(&[("a", "ann")]);
        let asked = ask(&agent, "go").await;
        let done = answer(&agent, &asked, no.clone()).await;
        assert!(
            book.lock().is_empty() && results(&done)[0].contains("approval.rejected"),
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
async fn an_answer_that_decides_nothing_asks_again() {
    let (agent, book) = scene(&[("a", "ann")]);
    let mut said = ask(&agent, "go").await;
    let id = open(&said)[0]["id"].clone();
    let unknown_tool = json!({"type": "edit", "edited_action": {"name": "telex", "args": {}}});
    for (no_decision, why) in [
        (json!(null), "null is no decision"),
        (json!("maybe"), "\"maybe\" is no decision"),
        (json!({"decisions": []}), "0 decisions"),
        (json!([true, true]), "2 decisions"),
        (json!({"type": "edit"}), "edited_action"),
        (unknown_tool, "\"telex\""),
    ] {
        said = answer(&agent, &said, no_decision.clone()).await;
        let asked = open(&said);
        assert_eq!((asked.len(), &asked[0]["id"]), (1, &id), "{no_decision}");
        assert!(
            asked[0]["value"]["error"].as_str().unwrap().contains(why),
            "{asked:?}"
        );
        assert_eq!(
            said.last_step().next[0].interrupts,
            asked,
            "the state shows the same"
        );
        assert!(
            book.lock().is_empty() && results(&said).is_empty(),
            "{no_decision}"
        );
    }
    answer(&agent, &said, json!("yes")).await;
    assert_eq!(*book.lock(), ["a mail to ann"]);
}

#[tokio::test]
async fn an_edited_call_is_made_and_stands_in_the_conversation() {
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
        let (agent, book) = scene(&[("a", "ann")]);
        let asked = ask(&agent, "go").await;
        let done = answer(&agent, &asked, edit.clone()).await;
        assert_eq!(*book.lock(), [format!("a {tool} to bob")], "{edit}");
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
        // The answer keeps its place and its id.
        let types: Vec<&str> = done
            .state()
            .messages()
            .iter()
            .map(Message::type_name)
            .collect();
        assert_eq!(types, ["human", "ai", "tool", "ai"]);
        assert_eq!(
            done.state().messages()[1].id,
            asked.state().messages()[1].id
        );
    }
}

#[tokio::test]
async fn viewers_of_updates_see_the_edited_answer() {
    let (agent, _) = scene(&[("a", "ann")]);
    let asked = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "bob"}}});
    let done = answer(&agent, &asked, edit).await;
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
async fn a_person_answers_in_place_of_the_tool() {
    for respond in [
        json!({"decisions": [{"type": "respond", "message": "by hand"}]}),
        json!([{"type": "response", "args": "by hand"}]),
    ] {
        let (agent, book) = scene(&[("a", "ann")]);
        let asked = ask(&agent, "go").await;
        let done = answer(&agent, &asked, respond).await;
        assert_eq!(
            (book.lock().len(), results(&done)),
            (0, vec!["by hand".to_owned()])
        );
    }
}

#[tokio::test]
async fn an_edit_cannot_do_what_the_policy_denies() {
    let (agent, book) = scene(&[("a", "ann")]);
    let asked = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "eve"}}});
    let done = answer(&agent, &asked, edit).await;
    assert!(
        book.lock().is_empty() && results(&done)[0].contains("rule.denied"),
        "{:?}",
        results(&done)
    );
}

#[tokio::test]
async fn decisions_on_several_calls_go_by_their_order() {
    let (agent, book) = scene(&[("a", "ann"), ("b", "bob"), ("c", "cat")]);
    let asked = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "dan"}}});
    let decisions = json!([{"type": "approve"}, {"type": "reject"}, edit]);
    for several in [json!({ "decisions": decisions }), decisions.clone()] {
        book.lock().clear();
        let done = answer(&agent, &asked, several).await;
        assert_eq!(*book.lock(), ["a mail to ann", "c mail to dan"]);
        assert!(
            results(&done)[1].contains("approval.rejected"),
            "{:?}",
            results(&done)
        );
        let to: Vec<Value> = calls_of_answer(&done)
            .into_iter()
            .map(|(_, args)| args["to"].clone())
            .collect();
        assert_eq!(to, ["ann", "bob", "dan"]);
    }
    for wrong in [
        json!({"decisions": [{"type": "approve"}]}),
        json!([]),
        json!([true, true, true, true]),
    ] {
        let refused = answer(&agent, &asked, wrong).await;
        assert!(
            matches!(&refused.outcome, Err(AgentError::Resume(text)) if text.contains("3 calls")),
            "{:?}",
            refused.outcome
        );
    }
}

#[tokio::test]
async fn a_map_of_ids_decides_on_some_and_asks_again_for_others() {
    let (agent, book) = scene(&[("a", "ann"), ("b", "bob"), ("c", "cat")]);
    let asked = ask(&agent, "go").await;
    let id = |at: usize| open(&asked)[at]["id"].as_str().unwrap().to_owned();
    let edit = json!([{"type": "edit", "args": {"action": "mail", "args": {"to": "dan"}}}]);
    let some = answer(&agent, &asked, json!({ id(1): edit, id(2): "perhaps" })).await;
    assert_eq!(*book.lock(), ["b mail to dan"]);
    let left = open(&some);
    assert_eq!(
        left.iter()
            .map(|question| question["id"].as_str().unwrap())
            .collect::<Vec<_>>(),
        [id(0), id(2)]
    );
    assert_eq!(
        (
            left[0]["value"].get("error").is_some(),
            left[1]["value"].get("error").is_some()
        ),
        (false, true)
    );
    let done = answer(
        &agent,
        &some,
        json!({"decisions": [{"type": "approve"}, {"type": "approve"}]}),
    )
    .await;
    assert_eq!(
        *book.lock(),
        ["b mail to dan", "a mail to ann", "c mail to cat"]
    );
    let to: Vec<Value> = calls_of_answer(&done)
        .into_iter()
        .map(|(_, args)| args["to"].clone())
        .collect();
    assert_eq!(to, ["ann", "dan", "cat"]);
}
