//! The conformance agent over the scripted model.

use futures_util::FutureExt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::agents::test_support::*;
use crate::clock::SystemClock;
use crate::models::ScriptedModel;
use crate::runtime::agent::{AgentEvent, AgentStart, StopKind};

fn agent() -> Arc<dyn Agent> {
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    ConformanceAgent::new(Arc::new(models))
        .agent(&Map::new())
        .now_or_never()
        .expect("nothing to wait for")
        .unwrap()
}

#[tokio::test]
async fn echo_answers_its_words_and_nothing_else_is_run() {
    let said = ask(
        &agent(),
        r#"[[tool:bash {"command":"echo  a b"}]] then say fine"#,
    )
    .await;
    assert_eq!(said.transcript()[2..], ["tool:a b", "ai:fine"]);
    let refused = ask(
        &agent(),
        r#"[[tool:bash {"command":"rm -rf /"}]] then say fine"#,
    )
    .await;
    assert!(refused.transcript()[2].starts_with("tool:Error"));
}

#[tokio::test]
async fn a_question_stops_the_run_and_its_answer_is_the_result() {
    let agent = agent();
    let said = ask(
        &agent,
        r#"[[tool:ask_twice {"first":"a?","second":"b?"}]] then say both"#,
    )
    .await;
    let half = run(&agent, go_on(&said, AgentStart::Resume(json!("A"))), |_| {}).await;
    assert!(
        matches!(&half.outcome.as_ref().unwrap().kind, StopKind::Question(open) if open[0]["value"] == json!({ "question": "b?" }))
    );
    let done = run(
        &agent,
        go_on(&half, AgentStart::Resume(json!({ "b": 1 }))),
        |_| {},
    )
    .await;
    assert_eq!(done.transcript()[2..], [r#"tool:["A",{"b":1}]"#, "ai:both"]);
}

#[tokio::test]
async fn an_explosion_ends_the_run_with_its_message() {
    let said = ask(&agent(), r#"[[tool:explode {"message":"boom"}]]"#).await;
    assert!(
        matches!(&said.outcome, Err(error) if error.name() == "RuntimeError" && error.to_string() == "boom")
    );
}

#[tokio::test]
async fn a_task_is_another_agent_whose_events_stay_under_its_namespace() {
    let said = ask(
        &agent(),
        r#"[[tool:task {"prompt":"then say inside"}]] then say outside"#,
    )
    .await;
    assert_eq!(said.transcript()[2..], ["tool:inside", "ai:outside"]);
    let namespaces: Vec<&str> = said
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::Nested(namespace, _) = event {
                Some(&**namespace)
            } else {
                None
            }
        })
        .collect();
    assert!(
        !namespaces.is_empty()
            && namespaces
                .iter()
                .all(|namespace| namespace.starts_with("tools:"))
    );
}

#[tokio::test]
async fn the_configuration_of_the_run_is_shown() {
    let input = fresh(state_of([crate::messages::Message::human(
        "[[tool:show_config {}]]",
    )]));
    let said = run(&agent(), input, |ctx| ctx.tags = vec!["a".to_owned()]).await;
    let shown: Value =
        serde_json::from_str(said.transcript()[2].strip_prefix("tool:").unwrap()).unwrap();
    assert_eq!(
        (&shown["tags"], &shown["recursion_limit"]),
        (&json!(["a"]), &json!(100))
    );
}
