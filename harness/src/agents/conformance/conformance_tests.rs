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
        .expect("there is nothing to wait for")
        .unwrap()
}

#[tokio::test]
async fn bash_supports_echo_only() {
    let output = ask(
        &agent(),
        r#"[[tool:bash {"command":"echo  a b"}]] then say fine"#,
    )
    .await;
    assert_eq!(output.transcript()[2..], ["tool:a b", "ai:fine"]);
    let refused = ask(
        &agent(),
        r#"[[tool:bash {"command":"rm -rf /"}]] then say fine"#,
    )
    .await;
    assert!(refused.transcript()[2].starts_with("tool:Error"));
}

#[tokio::test]
async fn question_interrupts_the_run_and_its_answer_is_the_result() {
    let agent = agent();
    let output = ask(
        &agent,
        r#"[[tool:ask_twice {"first":"a?","second":"b?"}]] then say both"#,
    )
    .await;
    let half = run(
        &agent,
        resume_input(&output, AgentStart::Resume(json!("A"))),
        |_| {},
    )
    .await;
    assert!(
        matches!(&half.outcome.as_ref().unwrap().kind, StopKind::Question(open) if open[0]["value"] == json!({ "question": "b?" }))
    );
    let done = run(
        &agent,
        resume_input(&half, AgentStart::Resume(json!({ "b": 1 }))),
        |_| {},
    )
    .await;
    assert_eq!(done.transcript()[2..], [r#"tool:["A",{"b":1}]"#, "ai:both"]);
}

#[tokio::test]
async fn explode_fails_the_run_with_its_message() {
    let output = ask(&agent(), r#"[[tool:explode {"message":"boom"}]]"#).await;
    assert!(
        matches!(&output.outcome, Err(error) if error.name() == "RuntimeError" && error.to_string() == "boom")
    );
}

#[tokio::test]
async fn task_events_are_nested_under_its_namespace() {
    let output = ask(
        &agent(),
        r#"[[tool:task {"prompt":"then say inside"}]] then say outside"#,
    )
    .await;
    assert_eq!(output.transcript()[2..], ["tool:inside", "ai:outside"]);
    let namespaces: Vec<&str> = output
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
async fn show_config_returns_the_run_configuration() {
    let input = fresh(state_of([crate::messages::Message::human(
        "[[tool:show_config {}]]",
    )]));
    let output = run(&agent(), input, |ctx| ctx.tags = vec!["a".to_owned()]).await;
    let config: Value =
        serde_json::from_str(output.transcript()[2].strip_prefix("tool:").unwrap()).unwrap();
    assert_eq!(
        (&config["tags"], &config["recursion_limit"]),
        (&json!(["a"]), &json!(100))
    );
}
