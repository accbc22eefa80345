//! Tool calls that interrupt the run with a question, and runs that resume with answers.

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
struct AskArgs {
    answers: usize,
}

/// Tool that asks until it has the required number of answers, and logs every call.
struct AskTool {
    executed: Arc<Mutex<Vec<String>>>,
    direct: bool,
}

impl Tool for AskTool {
    type Args = AskArgs;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    fn return_direct(&self) -> bool {
        self.direct
    }

    async fn call(&self, args: AskArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.executed.lock().push(ctx.call_id.clone());
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

struct Rig {
    agent: Arc<dyn Agent>,
    executed: Arc<Mutex<Vec<String>>>,
}

fn rig(asks: &[(&'static str, usize)]) -> Rig {
    rig_with(asks, false)
}

fn rig_with(asks: &[(&'static str, usize)], direct: bool) -> Rig {
    let executed = Arc::new(Mutex::new(vec![]));
    let batch = Reply::Call(
        asks.iter()
            .map(|(id, answers)| (*id, "asking", json!({ "answers": answers }).to_string()))
            .collect(),
    );
    let model = ReplayModel::new([batch, Reply::Say("thanks")]);
    Rig {
        agent: AgentBuilder::new(model)
            .tool(AskTool {
                executed: executed.clone(),
                direct,
            })
            .build(),
        executed,
    }
}

fn questions(output: &RunOutput) -> Vec<(String, String)> {
    let Ok(StopKind::Question(list)) = output.outcome.as_ref().map(|outcome| outcome.kind.clone())
    else {
        panic!("{:?}", output.outcome)
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
async fn only_the_answered_call_is_executed_again() {
    let rig = rig(&[("a", 0), ("b", 2)]);
    let output = ask(&rig.agent, "go").await;
    assert_eq!(questions(&output).len(), 1);
    assert_eq!(output.transcript(), ["human:go", "ai:", "tool:[]"]);
    let pending = &output.last_step().next[0];
    assert_eq!(
        (pending.name.as_str(), pending.interrupts.len()),
        ("tools", 1)
    );
    let resumed = run(
        &rig.agent,
        resume_input(&output, AgentStart::Resume(json!("red"))),
        |_| {},
    )
    .await;
    assert_eq!(questions(&resumed)[0].0, "b 1?");
    assert_ne!(questions(&resumed)[0].1, questions(&output)[0].1);
    let done = run(
        &rig.agent,
        resume_input(&resumed, AgentStart::Resume(json!("blue"))),
        |_| {},
    )
    .await;
    assert_eq!(
        done.transcript()[2..],
        ["tool:[]", "tool:[\"red\", \"blue\"]", "ai:thanks"]
    );
    assert_eq!(*rig.executed.lock(), ["a", "b", "b", "b"]);
}

#[tokio::test]
async fn answer_map_may_leave_questions_open() {
    let rig = rig(&[("a", 1), ("b", 1)]);
    let output = ask(&rig.agent, "go").await;
    let open = questions(&output);
    let refused = run(
        &rig.agent,
        resume_input(&output, AgentStart::Resume(json!("one for all"))),
        |_| {},
    )
    .await;
    assert!(
        matches!(&refused.outcome, Err(AgentError::Resume(text)) if text.contains("2 questions"))
    );
    let half = run(
        &rig.agent,
        resume_input(
            &output,
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
        &rig.agent,
        resume_input(&half, AgentStart::Resume(json!("A"))),
        |_| {},
    )
    .await;
    assert_eq!(
        done.transcript()[2..],
        ["tool:[\"B\"]", "tool:[\"A\"]", "ai:thanks"]
    );
    assert_eq!(*rig.executed.lock(), ["a", "b", "b", "a"]);
}

#[tokio::test]
async fn resume_without_an_answer_repeats_the_question() {
    let rig = rig(&[("a", 1)]);
    let output = ask(&rig.agent, "go").await;
    let resumed = run(
        &rig.agent,
        resume_input(&output, AgentStart::Continue),
        |_| {},
    )
    .await;
    assert_eq!(questions(&resumed), questions(&output));
    assert_eq!(rig.executed.lock().len(), 1);
}

#[tokio::test]
async fn direct_result_ends_the_run_after_an_interrupt() {
    for asks in [&[("a", 1)][..], &[("a", 1), ("b", 0)]] {
        let rig = rig_with(asks, true);
        let output = ask(&rig.agent, "go").await;
        let done = run(
            &rig.agent,
            resume_input(&output, AgentStart::Resume(json!("red"))),
            |_| {},
        )
        .await;
        assert_eq!(done.outcome.as_ref().unwrap().kind, StopKind::Completed);
        assert!(done.transcript().contains(&"tool:[\"red\"]".to_owned()));
        assert!(
            done.transcript().iter().all(|line| line != "ai:thanks"),
            "{asks:?}"
        );
    }
}

/// Agent with one call that asks `answers` times and whose approval depends on `rule`.
fn guarded(rule: &str, answers: usize, executed: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Agent> {
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
        .tool(AskTool {
            executed: executed.clone(),
            direct: false,
        })
        .middleware(guard)
        .build()
}

#[tokio::test]
async fn tool_answers_and_approvals_are_kept_separate() {
    let executed = Arc::new(Mutex::new(vec![]));
    let output = ask(&guarded("allow", 1, &executed), "go").await;
    assert_eq!(questions(&output)[0].0, "a 0?");
    // The rules change while the tool's question is open.
    let strict = guarded("ask", 1, &executed);
    let resumed = run(
        &strict,
        resume_input(&output, AgentStart::Resume(json!("red"))),
        |_| {},
    )
    .await;
    let question = &resumed.last_step().next[0].interrupts[0];
    assert_eq!(question["value"]["action_requests"][0]["name"], "asking");
    assert_eq!(*executed.lock(), ["a"], "the call was not made again");
    let done = run(
        &strict,
        resume_input(&resumed, AgentStart::Resume(json!(true))),
        |_| {},
    )
    .await;
    assert_eq!(executed.lock().len(), 2);
    assert!(
        done.transcript().contains(&"tool:[\"red\"]".to_owned()),
        "{:?}",
        done.transcript()
    );
}

#[tokio::test]
async fn approval_holds_for_later_questions_of_the_call() {
    let executed = Arc::new(Mutex::new(vec![]));
    let agent = guarded("ask", 2, &executed);
    let mut output = ask(&agent, "go").await;
    let mut question_ids = HashSet::new();
    for answer in [json!(true), json!("red"), json!("blue")] {
        assert!(
            question_ids.insert(
                output.last_step().next[0].interrupts[0]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            ),
            "each question has an id of its own"
        );
        output = run(
            &agent,
            resume_input(&output, AgentStart::Resume(answer)),
            |_| {},
        )
        .await;
    }
    assert!(
        output
            .transcript()
            .contains(&"tool:[\"red\", \"blue\"]".to_owned()),
        "{:?}",
        output.transcript()
    );
    assert_eq!(executed.lock().len(), 3);
}
