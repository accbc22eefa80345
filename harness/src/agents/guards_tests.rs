//! Guard middlewares of a lead agent.

use futures_util::FutureExt;
use serde_json::{Map, json};

use super::*;
use crate::agents::catalog::AgentSource;
use crate::agents::lead::{LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, ask, calls};
use crate::clock::SystemClock;
use crate::models::ModelCatalog;
use crate::runtime::agent::Agent;

fn agent(model: &Arc<ReplayModel>, change: impl FnOnce(&mut LeadAgentSpec)) -> Arc<dyn Agent> {
    let catalog = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone());
    let mut spec = LeadAgentSpec::new(Arc::new(catalog));
    change(&mut spec);
    LeadAgents::new(spec)
        .agent(&Map::new())
        .now_or_never()
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn looping_model_is_warned_once_and_then_stopped() {
    let model = ReplayModel::new([calls([("c", "look", json!({"path": "/a"}))])]);
    let output = ask(&agent(&model, |_| {}), "go").await;
    assert_eq!(
        output.outcome.as_ref().unwrap().stop_reason.as_deref(),
        Some("loop_capped")
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    let warned =
        |at: usize| requests[at].messages.last().unwrap().name.as_deref() == Some("loop_warning");
    assert_eq!((0..5).filter(|at| warned(*at)).collect::<Vec<_>>(), [3]);
    let state = output.state().messages();
    assert!(
        state
            .iter()
            .all(|message| message.name.as_deref() != Some("loop_warning")),
        "the thread does not contain the warning"
    );
    assert!(
        state
            .last()
            .unwrap()
            .content
            .text()
            .contains("I stopped here")
    );
}

#[tokio::test]
async fn guardrails_without_a_provider_deny() {
    let model = ReplayModel::new([
        calls([("c", "write_todos", json!({"todos": []}))]),
        Reply::Say("done"),
    ]);
    let output = ask(
        &agent(&model, |spec| spec.guards.guardrails.enabled = true),
        "go",
    )
    .await;
    assert!(
        output.transcript()[2].contains("oap.evaluator_error"),
        "{:?}",
        output.transcript()
    );
}

#[tokio::test]
async fn loop_continues_when_detection_is_disabled() {
    let model = ReplayModel::new(
        std::iter::repeat_n(calls([("c", "look", json!({}))]), 9).chain([Reply::Say("done")]),
    );
    let output = ask(
        &agent(&model, |spec| spec.guards.loop_detection.enabled = false),
        "go",
    )
    .await;
    assert_eq!(output.outcome.as_ref().unwrap().stop_reason, None);
    assert_eq!(model.requests().len(), 10);
}
