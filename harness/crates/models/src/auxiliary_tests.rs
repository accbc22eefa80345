//! Auxiliary calls: order of models, usage records and time limits.

use super::*;
use crate::{BreakerPolicy, ModelEntry, ScriptedModel};
use deerflow_core::clock::{ManualClock, SystemClock};
use deerflow_core::ids::SeededIds;

fn models(names: &[&str]) -> AuxiliaryModels {
    let entries = names
        .iter()
        .map(|name| ModelEntry::new(*name, "scripted", "s"));
    let catalog = ModelCatalog::new(entries, Arc::new(SystemClock))
        .with_model(Arc::new(ScriptedModel::new("spare", "s")));
    AuxiliaryModels {
        catalog: Arc::new(catalog),
        breakers: Arc::default(),
        retry: RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        },
    }
}

fn auxiliary_request<'a>(models: &[&'a str], prompt: &str) -> AuxiliaryRequest<'a> {
    AuxiliaryRequest {
        models: models.to_vec(),
        system: "s",
        prompt: prompt.to_owned(),
        limit: Duration::from_secs(30),
    }
}

fn caller<'a>(ids: &'a SeededIds, sink: Option<&'a EventSink>) -> Caller<'a> {
    Caller {
        caller: "middleware:test",
        clock: &SystemClock,
        ids,
        sink,
    }
}

#[tokio::test]
async fn first_answer_wins_and_only_its_call_is_reported() {
    let ids = SeededIds::new(1);
    let (sink, mut events) = EventSink::channel();
    let request = auxiliary_request(&["nobody", "a"], "[[usage 11,7]] say fine");
    let answer = models(&["a"])
        .ask(&request, caller(&ids, Some(&sink)))
        .await
        .unwrap();
    assert_eq!(
        (answer.model.as_str(), answer.usage.unwrap().total()),
        ("a", 18)
    );
    drop(sink);
    let mut reported = Vec::new();
    while let Some(event) = events.recv().await {
        reported.push(match event {
            AgentEvent::ModelError { caller, .. } => format!("error {caller}"),
            AgentEvent::ModelRequest { caller, model, .. } => format!("request {caller} {model}"),
            AgentEvent::ModelCall(call) => format!("call {} {}", call.caller, call.model),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        reported,
        [
            "error middleware:test",
            "request middleware:test a",
            "call middleware:test a"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn silent_model_times_out_and_next_is_called() {
    let ids = SeededIds::new(1);
    let error = models(&["a"])
        .ask(&auxiliary_request(&["a"], "[[hang]]"), caller(&ids, None))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Stalled);
    assert!(
        models(&["a"])
            .ask(
                &auxiliary_request(&["a", "spare"], "then say x"),
                caller(&ids, None)
            )
            .await
            .is_ok()
    );
    let error = models(&[])
        .ask(&auxiliary_request(&["a"], "x"), caller(&ids, None))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Config);
}

#[tokio::test(start_paused = true)]
async fn repeated_timeouts_open_circuit_until_a_probe() {
    let (ids, clock) = (
        SeededIds::new(1),
        ManualClock::starting_at(chrono::DateTime::UNIX_EPOCH),
    );
    let policy = BreakerPolicy {
        failure_threshold: 2,
        recovery: Duration::from_secs(60),
    };
    let models = AuxiliaryModels {
        breakers: Arc::new(Breakers::new(policy)),
        ..models(&["a"])
    };
    let ask = async |prompt: &str| {
        let caller = Caller {
            clock: &clock,
            ..caller(&ids, None)
        };
        models
            .ask(&auxiliary_request(&["a"], prompt), caller)
            .await
            .map_err(|error| error.kind)
            .map(|answer| answer.model)
    };
    assert_eq!(ask("[[hang]]").await, Err(ModelErrorKind::Stalled));
    assert!(ask("then say x").await.is_ok(), "it answered in between");
    assert_eq!(
        (ask("[[hang]]").await, ask("[[hang]]").await),
        (Err(ModelErrorKind::Stalled), Err(ModelErrorKind::Stalled))
    );
    clock.advance(chrono::TimeDelta::seconds(59));
    assert_eq!(
        ask("then say x").await,
        Err(ModelErrorKind::Busy),
        "the circuit is open"
    );
    clock.advance(chrono::TimeDelta::seconds(1));
    assert_eq!(
        ask("[[hang]]").await,
        Err(ModelErrorKind::Stalled),
        "the probe"
    );
    assert_eq!(
        ask("then say x").await,
        Err(ModelErrorKind::Busy),
        "the recovery time starts again"
    );
    clock.advance(chrono::TimeDelta::seconds(60));
    assert!(ask("then say x").await.is_ok() && ask("then say x").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn timeout_without_permit_is_no_provider_failure() {
    let (ids, policy) = (
        SeededIds::new(1),
        BreakerPolicy {
            failure_threshold: 1,
            ..BreakerPolicy::default()
        },
    );
    let entry = ModelEntry {
        max_concurrent_calls: Some(1),
        ..ModelEntry::new("a", "scripted", "s")
    };
    let catalog = Arc::new(ModelCatalog::new([entry], Arc::new(SystemClock)));
    let models = AuxiliaryModels {
        breakers: Arc::new(Breakers::new(policy)),
        catalog,
        retry: RetryPolicy::default(),
    };
    let request = ModelRequest {
        message_id: "m1".to_owned(),
        system: None,
        messages: vec![Message::human("then say x")],
        tools: Arc::from([]),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    };
    let permit = models
        .catalog
        .get("a")
        .unwrap()
        .stream(request)
        .await
        .unwrap();
    let timed_out = models
        .ask(&auxiliary_request(&["a"], "then say x"), caller(&ids, None))
        .await;
    assert_eq!(timed_out.unwrap_err().kind, ModelErrorKind::Stalled);
    drop(permit);
    assert!(
        models
            .ask(&auxiliary_request(&["a"], "then say x"), caller(&ids, None))
            .await
            .is_ok(),
        "its circuit is closed"
    );
}

#[test]
fn strip_thinking_removes_think_blocks() {
    assert_eq!(strip_thinking("<think>a</think> b "), "b");
    assert_eq!(strip_thinking("a</think>b"), "b");
    assert_eq!(strip_thinking("b <think>never ends"), "b");
    assert_eq!(strip_thinking(" plain "), "plain");
}
