//! Goals in a real agent: sent on, reached, given up, taken over.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::clock::SystemClock;
use crate::messages::{Message, kwargs};
use crate::models::{ModelCatalog, RetryPolicy};
use crate::runtime::agent::{Agent, AgentStart, StopKind};

const MORE: &str = r#"{"satisfied": false, "blocker": "goal_not_met_yet", "reason": "the <b>tests</b> are missing"}"#;
const DONE: &str = r#"{"satisfied": true, "blocker": "none", "reason": "all is there"}"#;
const ASKS: &str =
    r#"{"satisfied": false, "blocker": "needs_user_input", "reason": "a password is missing"}"#;

/// An agent whose model also judges.
fn agent(replies: impl IntoIterator<Item = &'static str>) -> (Arc<dyn Agent>, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies.into_iter().map(Reply::Say));
    let catalog = Arc::new(ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone()));
    let models = AsideModels {
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

fn held(said: &Said) -> Option<Goal> {
    Goal::of(said.state())
}

fn events(said: &Said) -> Vec<&Value> {
    said.events
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
async fn an_agent_is_sent_on_until_its_goal_is_reached() {
    let (agent, model) = agent(["half", MORE, "all", DONE]);
    let said = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    assert_eq!(said.outcome.as_ref().unwrap().kind, StopKind::Completed);
    let messages = said.state().messages();
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
    assert_eq!(said.state().channel(GOAL), None);
    let told: Vec<_> = events(&said)
        .into_iter()
        .map(|event| (&event["satisfied"], &event["continues"]))
        .collect();
    assert_eq!(
        told,
        [(&json!(false), &json!(true)), (&json!(true), &json!(false))]
    );
    let judged = &model.asked()[3];
    assert!(
        judged.tools.is_empty() && judged.messages[0].content.text().contains("Assistant: all")
    );
    assert!(
        !judged.messages[0]
            .content
            .text()
            .contains("system-reminder"),
        "what is hidden is no evidence"
    );
}

#[tokio::test]
async fn a_thread_without_a_goal_asks_nobody() {
    let (agent, model) = agent(["hi"]);
    ask(&agent, "hello").await;
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn a_goal_that_only_the_user_can_help_on_stays_and_says_why() {
    let (agent, _) = agent(["which password?", ASKS]);
    let said = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    let held = held(&said).unwrap();
    let evaluation = held.last_evaluation.unwrap();
    assert_eq!(
        (held.continuation_count, evaluation.blocker),
        (0, Blocker::NeedsUserInput)
    );
    assert_eq!(
        evaluation.stand_down_reason.as_deref(),
        Some("needs_user_input")
    );
    assert!(evaluation.run_id.is_some() && evaluation.evaluated_at.is_some());
}

#[tokio::test]
async fn a_judgement_that_cannot_be_read_ends_the_work() {
    let (agent, model) = agent(["half", "no idea"]);
    let said = run(&agent, fresh(with_goal(&goal())), |_| {}).await;
    assert_eq!(
        held(&said)
            .unwrap()
            .last_evaluation
            .unwrap()
            .stand_down_reason
            .as_deref(),
        Some("evaluation_failed")
    );
    assert_eq!(model.asked().len(), 2);
}

#[tokio::test]
async fn nobody_is_sent_on_for_ever_and_each_time_has_its_own_steps() {
    let (agent, model) = agent([MORE]);
    let said = run(&agent, fresh(with_goal(&goal())), |ctx| {
        ctx.recursion_limit = 5
    })
    .await;
    assert_eq!(said.outcome.as_ref().unwrap().kind, StopKind::Completed);
    let held = held(&said).unwrap();
    assert_eq!((held.continuation_count, held.no_progress_count), (2, 2));
    assert_eq!(model.asked().len(), 6, "three answers, each judged");
}

#[tokio::test]
async fn a_run_that_was_taken_over_counts_on() {
    let (before, _) = agent(["half", MORE, "never said"]);
    let said = run(&before, fresh(with_goal(&goal())), |_| {}).await;
    // What a process that dies during the continuation has saved.
    let steps = said.steps();
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
    let (after, _) = agent(["all", DONE]);
    let said = run(&after, input, |_| {}).await;
    assert_eq!(
        said.state().messages().last().unwrap().content.text(),
        "all"
    );
    assert_eq!(held(&said), None);
}
