//! Calls that ask a person, and runs that come back with answers.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::config::GuardrailProviderConfig;
use crate::middlewares::GuardrailMiddleware;
use crate::middlewares::guardrail::policy_of;
use crate::runtime::agent::{Agent, AgentError, AgentStart, StopKind};
use crate::tools::{Tool, ToolContext, ToolControl, ToolError, ToolOutput};

#[derive(Debug, Deserialize, JsonSchema)]
struct Wanted {
    answers: usize,
}

/// Asks until it has as many answers as it wants, and notes every call.
struct Asking {
    made: Arc<Mutex<Vec<String>>>,
    direct: bool,
}

impl Tool for Asking {
    type Args = Wanted;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    fn return_direct(&self) -> bool {
        self.direct
    }

    async fn call(&self, args: Wanted, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.made.lock().push(ctx.call_id.clone());
        if ctx.answers.len() < args.answers {
            let question = json!(format!("{} {}?", ctx.call_id, ctx.answers.len()));
            return Ok(ToolOutput::only(ToolControl::Ask(question)));
        }
        Ok(format!(
            "{:?}",
            ctx.answers
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
        )
        .into())
    }
}

struct Scene {
    agent: Arc<dyn Agent>,
    made: Arc<Mutex<Vec<String>>>,
}

fn scene(wanted: &[(&'static str, usize)]) -> Scene {
    scene_with(wanted, false)
}

fn scene_with(wanted: &[(&'static str, usize)], direct: bool) -> Scene {
    let made = Arc::new(Mutex::new(vec![]));
    let batch = Reply::Call(
        wanted
            .iter()
            .map(|(id, answers)| (*id, "asking", json!({ "answers": answers }).to_string()))
            .collect(),
    );
    let model = ReplayModel::new([batch, Reply::Say("thanks")]);
    Scene {
        agent: AgentBuilder::new(model)
            .tool(Asking {
                made: made.clone(),
                direct,
            })
            .build(),
        made,
    }
}

fn questions(said: &Said) -> Vec<(String, String)> {
    let Ok(StopKind::Question(list)) = said.outcome.as_ref().map(|outcome| outcome.kind.clone())
    else {
        panic!("{:?}", said.outcome)
    };
    list.iter()
        .map(|entry| {
            (
                entry["value"].as_str().unwrap().to_owned(),
                entry["id"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_call_is_made_again_with_its_answers_and_its_siblings_are_not() {
    let scene = scene(&[("a", 0), ("b", 2)]);
    let said = ask(&scene.agent, "go").await;
    assert_eq!(questions(&said).len(), 1);
    assert_eq!(said.transcript(), ["human:go", "ai:", "tool:[]"]);
    let due = &said.last_step().next[0];
    assert_eq!((due.name.as_str(), due.interrupts.len()), ("tools", 1));
    let again = run(
        &scene.agent,
        go_on(&said, AgentStart::Resume(json!("red"))),
        |_| {},
    )
    .await;
    assert_eq!(questions(&again)[0].0, "b 1?");
    assert_ne!(questions(&again)[0].1, questions(&said)[0].1);
    let done = run(
        &scene.agent,
        go_on(&again, AgentStart::Resume(json!("blue"))),
        |_| {},
    )
    .await;
    assert_eq!(
        done.transcript()[2..],
        ["tool:[]", "tool:[\"red\", \"blue\"]", "ai:thanks"]
    );
    assert_eq!(*scene.made.lock(), ["a", "b", "b", "b"]);
}

#[tokio::test]
async fn several_questions_take_a_map_that_may_leave_some_open() {
    let scene = scene(&[("a", 1), ("b", 1)]);
    let said = ask(&scene.agent, "go").await;
    let open = questions(&said);
    let refused = run(
        &scene.agent,
        go_on(&said, AgentStart::Resume(json!("one for all"))),
        |_| {},
    )
    .await;
    assert!(
        matches!(&refused.outcome, Err(AgentError::Resume(text)) if text.contains("2 questions"))
    );
    let half = run(
        &scene.agent,
        go_on(
            &said,
            AgentStart::Resume(json!({ open[1].1.as_str(): "B" })),
        ),
        |_| {},
    )
    .await;
    assert_eq!(
        questions(&half),
        [open[0].clone()],
        "the other question stays, with its id"
    );
    assert_eq!(half.transcript()[2..], ["tool:[\"B\"]"]);
    let done = run(
        &scene.agent,
        go_on(&half, AgentStart::Resume(json!("A"))),
        |_| {},
    )
    .await;
    assert_eq!(
        done.transcript()[2..],
        ["tool:[\"B\"]", "tool:[\"A\"]", "ai:thanks"]
    );
    assert_eq!(*scene.made.lock(), ["a", "b", "b", "a"]);
}

#[tokio::test]
async fn going_on_without_an_answer_asks_the_same_again() {
    let scene = scene(&[("a", 1)]);
    let said = ask(&scene.agent, "go").await;
    let again = run(&scene.agent, go_on(&said, AgentStart::Continue), |_| {}).await;
    assert_eq!(questions(&again), questions(&said));
    assert_eq!(scene.made.lock().len(), 1);
}

#[tokio::test]
async fn a_result_that_is_the_runs_result_ends_the_run_also_after_a_question() {
    for wanted in [&[("a", 1)][..], &[("a", 1), ("b", 0)]] {
        let scene = scene_with(wanted, true);
        let said = ask(&scene.agent, "go").await;
        let done = run(
            &scene.agent,
            go_on(&said, AgentStart::Resume(json!("red"))),
            |_| {},
        )
        .await;
        assert_eq!(done.outcome.as_ref().unwrap().kind, StopKind::Completed);
        assert!(done.transcript().contains(&"tool:[\"red\"]".to_owned()));
        assert!(
            done.transcript().iter().all(|line| line != "ai:thanks"),
            "{wanted:?}"
        );
    }
}

/// An agent whose one call, which asks `answers` times, needs an approval or not, by the rules of the day.
fn guarded(rule: &str, answers: usize, made: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Agent> {
    let rules: GuardrailProviderConfig =
        serde_json::from_value(json!({"use": "rules", "config": {"default": rule}})).unwrap();
    let guard = GuardrailMiddleware::new(policy_of(Some(&rules)), true, None);
    let call = Reply::Call(vec![(
        "a",
        "asking",
        json!({ "answers": answers }).to_string(),
    )]);
    let model = ReplayModel::new([call, Reply::Say("thanks")]);
    AgentBuilder::new(model)
        .tool(Asking {
            made: made.clone(),
            direct: false,
        })
        .middleware(guard)
        .build()
}

#[tokio::test]
async fn an_answer_to_a_tool_is_no_approval_and_an_approval_no_answer_to_a_tool() {
    let made = Arc::new(Mutex::new(vec![]));
    let said = ask(&guarded("allow", 1, &made), "go").await;
    assert_eq!(questions(&said)[0].0, "a 0?");
    // The rules change while the tool's question is open.
    let strict = guarded("ask", 1, &made);
    let again = run(
        &strict,
        go_on(&said, AgentStart::Resume(json!("red"))),
        |_| {},
    )
    .await;
    let question = &again.last_step().next[0].interrupts[0];
    assert_eq!(question["value"]["action_requests"][0]["name"], "asking");
    assert_eq!(*made.lock(), ["a"], "the call was not made again");
    let done = run(
        &strict,
        go_on(&again, AgentStart::Resume(json!(true))),
        |_| {},
    )
    .await;
    assert_eq!(made.lock().len(), 2);
    assert!(
        done.transcript().contains(&"tool:[\"red\"]".to_owned()),
        "{:?}",
        done.transcript()
    );
}

#[tokio::test]
async fn one_approval_holds_for_all_that_the_call_asks_later() {
    let made = Arc::new(Mutex::new(vec![]));
    let agent = guarded("ask", 2, &made);
    let mut said = ask(&agent, "go").await;
    let mut asked = HashSet::new();
    for answer in [json!(true), json!("red"), json!("blue")] {
        assert!(
            asked.insert(
                said.last_step().next[0].interrupts[0]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            ),
            "each question has an id of its own"
        );
        said = run(&agent, go_on(&said, AgentStart::Resume(answer)), |_| {}).await;
    }
    assert!(
        said.transcript()
            .contains(&"tool:[\"red\", \"blue\"]".to_owned()),
        "{:?}",
        said.transcript()
    );
    assert_eq!(made.lock().len(), 3);
}
