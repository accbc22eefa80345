//! Tests of goals in a complete agent: continuation, completion, stand-down and failover.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::clock::SystemClock;
use crate::messages::{Message, kwargs};
use crate::models::{ModelCatalog, RetryPolicy};
use crate::runtime::agent::{Agent, AgentStart, StopKind};

const UNSATISFIED: &str = r#"{"satisfied": false, "blocker": "goal_not_met_yet", "reason": "the <b>tests</b> are missing"}"#;
const SATISFIED: &str = r#"{"satisfied": true, "blocker": "none", "reason": "all is there"}"#;
const ASKS: &str =
    r#"{"satisfied": false, "blocker": "needs_user_input", "reason": "a password is missing"}"#;

/// Agent whose model also evaluates the goal.
fn agent(replies: impl IntoIterator<Item = &'static str>) -> (Arc<dyn Agent>, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies.into_iter().map(Reply::Say));
    let catalog = Arc::new(ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone()));
    let models = AuxiliaryModels {
        catalog,
        breakers: Arc::default(),
        retry: RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        },
    };
    (
        AgentBuilder::new(model.clone())
            .middleware(GoalMiddleware::new(models, "replay"))
            .build(),
        model,
    )
}

fn with_goal(goal: &Goal) -> ThreadState {
    let mut state = state_of([Message::human("write it")]);
    state
        .apply(
            StateUpdate::channel(GOAL, json!(goal)),
            &crate::ids::SystemIds::default(),
        )
        .unwrap();
    state
}

fn goal() -> Goal {
    Goal::new("a program with <tests>", 8, chrono::DateTime::UNIX_EPOCH)
}

fn goal_of(output: &RunOutput) -> Option<Goal> {
    Goal::of(output.state())
}

fn events(output: &RunOutput) -> Vec<&Value> {
    output
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::Custom(event) = event {
                Some(event)
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn agent_continues_until_goal_is_reached() {
    let (agent, model) = agent(["half", UNSATISFIED, "all", SATISFIED]);
    let output = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    assert_eq!(output.outcome.as_ref().unwrap().kind, StopKind::Completed);
    let messages = output.state().messages();
    let texts: Vec<String> = messages
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(
        (
            texts[0].as_str(),
            texts[1].as_str(),
            texts[3].as_str(),
            texts.len()
        ),
        ("write it", "half", "all", 4)
    );
    assert!(
        messages[2].flag(kwargs::HIDE_FROM_UI) && messages[2].name.as_deref() == Some(CONTINUATION)
    );
    assert!(
        texts[2].contains("a program with &lt;tests&gt;")
            && texts[2].contains("the &lt;b&gt;tests&lt;/b&gt; are missing")
    );
    assert_eq!(output.state().channel(GOAL), None);
    let reported: Vec<_> = events(&output)
        .into_iter()
        .map(|event| (&event["satisfied"], &event["continues"]))
        .collect();
    assert_eq!(
        reported,
        [(&json!(false), &json!(true)), (&json!(true), &json!(false))]
    );
    let evaluation_request = &model.requests()[3];
    assert!(
        evaluation_request.tools.is_empty()
            && evaluation_request.messages[0]
                .content
                .text()
                .contains("Assistant: all")
    );
    assert!(
        !evaluation_request.messages[0]
            .content
            .text()
            .contains("system-reminder"),
        "hidden messages are not part of the excerpt"
    );
}

#[tokio::test]
async fn thread_without_goal_is_not_evaluated() {
    let (agent, model) = agent(["hi"]);
    ask(&agent, "hello").await;
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn goal_that_needs_user_stands_down_with_reason() {
    let (agent, _) = agent(["which password?", ASKS]);
    let output = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    let goal = goal_of(&output).unwrap();
    let evaluation = goal.last_evaluation.unwrap();
    assert_eq!(
        (goal.continuation_count, evaluation.blocker),
        (0, Blocker::NeedsUserInput)
    );
    assert_eq!(
        evaluation.stand_down_reason.as_deref(),
        Some("needs_user_input")
    );
    assert!(evaluation.run_id.is_some() && evaluation.evaluated_at.is_some());
}

#[tokio::test]
async fn invalid_evaluation_stands_down() {
    let (agent, model) = agent(["half", "no idea"]);
    let output = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    assert_eq!(
        goal_of(&output)
            .unwrap()
            .last_evaluation
            .unwrap()
            .stand_down_reason
            .as_deref(),
        Some("evaluation_failed")
    );
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn continuations_are_limited_and_reset_step_count() {
    let (agent, model) = agent([UNSATISFIED]);
    let output = run(&agent, fresh(with_goal(&goal())), |ctx| {
        ctx.recursion_limit = 5
    })
    .await;
    assert_eq!(output.outcome.as_ref().unwrap().kind, StopKind::Completed);
    let goal = goal_of(&output).unwrap();
    assert_eq!((goal.continuation_count, goal.no_progress_count), (2, 2));
    assert_eq!(
        model.requests().len(),
        6,
        "three answers with one evaluation each"
    );
}

#[tokio::test]
async fn continuation_count_survives_failover() {
    let (before, _) = agent(["half", UNSATISFIED, "never said"]);
    let output = run(&before, fresh(with_goal(&goal())), |_| {}).await;
    // Checkpoint of a process that dies during the continuation.
    let steps = output.steps();
    let at = steps.iter().position(|step| {
        step.checkpoint && Goal::of(&step.state).is_some_and(|goal| goal.continuation_count == 1)
    });
    let saved = steps[at.expect("a checkpoint of the continuation")];
    let input = crate::runtime::agent::AgentInput {
        state: ThreadState::clone(&saved.state),
        start: AgentStart::Continue,
        machine: Some(saved.machine.clone()),
        step: 0,
        nested: Default::default(),
    };
    let (after, _) = agent(["all", SATISFIED]);
    let output = run(&after, input, |_| {}).await;
    assert_eq!(
        output.state().messages().last().unwrap().content.text(),
        "all"
    );
    assert_eq!(goal_of(&output), None);
}
