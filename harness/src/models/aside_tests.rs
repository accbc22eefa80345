//! Asking aside: who is asked, who pays, and how long it may take.

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::ids::SeededIds;
use crate::models::{BreakerPolicy, ModelEntry, ScriptedModel};

fn models(names: &[&str]) -> AsideModels {
    let entries = names
        .iter()
        .map(|name| ModelEntry::new(*name, "scripted", "s"));
    let catalog = ModelCatalog::new(entries, Arc::new(SystemClock))
        .with_model(Arc::new(ScriptedModel::new("spare", "s")));
    AsideModels {
        catalog: Arc::new(catalog),
        breakers: Arc::default(),
        retry: RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        },
    }
}

fn question<'a>(models: &[&'a str], prompt: &str) -> Question<'a> {
    Question {
        models: models.to_vec(),
        system: "s",
        prompt: prompt.to_owned(),
        limit: Duration::from_secs(30),
    }
}

fn asker<'a>(ids: &'a SeededIds, sink: Option<&'a EventSink>) -> Asker<'a> {
    Asker {
        caller: "middleware:test",
        clock: &SystemClock,
        ids,
        sink,
    }
}

#[tokio::test]
async fn the_first_model_that_answers_is_taken_and_its_call_is_told_but_not_its_tokens() {
    let ids = SeededIds::new(1);
    let (sink, mut events) = EventSink::channel();
    let asked = question(&["nobody", "a"], "[[usage 11,7]] say fine");
    let answer = models(&["a"])
        .ask(&asked, asker(&ids, Some(&sink)))
        .await
        .unwrap();
    assert_eq!(
        (answer.model.as_str(), answer.usage.unwrap().total()),
        ("a", 18)
    );
    drop(sink);
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        told.push(match event {
            AgentEvent::ModelError { caller, .. } => format!("error {caller}"),
            AgentEvent::ModelRequest { caller, model, .. } => format!("request {caller} {model}"),
            AgentEvent::ModelCall(call) => format!("call {} {}", call.caller, call.model),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        told,
        [
            "error middleware:test",
            "request middleware:test a",
            "call middleware:test a"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_silent_is_given_up_and_the_next_one_asked() {
    let ids = SeededIds::new(1);
    let error = models(&["a"])
        .ask(&question(&["a"], "[[hang]]"), asker(&ids, None))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Stalled);
    assert!(
        models(&["a"])
            .ask(&question(&["a", "spare"], "then say x"), asker(&ids, None))
            .await
            .is_ok()
    );
    let error = models(&[])
        .ask(&question(&["a"], "x"), asker(&ids, None))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Config);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_silent_too_often_is_left_alone_until_a_question_may_try_it() {
    let (ids, clock) = (
        SeededIds::new(1),
        ManualClock::starting_at(chrono::DateTime::UNIX_EPOCH),
    );
    let policy = BreakerPolicy {
        failure_threshold: 2,
        recovery: Duration::from_secs(60),
    };
    let models = AsideModels {
        breakers: Arc::new(Breakers::new(policy)),
        ..models(&["a"])
    };
    let ask = async |prompt: &str| {
        let asker = Asker {
            clock: &clock,
            ..asker(&ids, None)
        };
        models
            .ask(&question(&["a"], prompt), asker)
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
        "it is left alone"
    );
    clock.advance(chrono::TimeDelta::seconds(1));
    assert_eq!(
        ask("[[hang]]").await,
        Err(ModelErrorKind::Stalled),
        "the one that tried"
    );
    assert_eq!(
        ask("then say x").await,
        Err(ModelErrorKind::Busy),
        "the pause begins anew"
    );
    clock.advance(chrono::TimeDelta::seconds(60));
    assert!(ask("then say x").await.is_ok() && ask("then say x").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_got_no_place_says_nothing_of_the_provider() {
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
    let models = AsideModels {
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
    let held = models
        .catalog
        .get("a")
        .unwrap()
        .stream(request)
        .await
        .unwrap();
    let late = models
        .ask(&question(&["a"], "then say x"), asker(&ids, None))
        .await;
    assert_eq!(late.unwrap_err().kind, ModelErrorKind::Stalled);
    drop(held);
    assert!(
        models
            .ask(&question(&["a"], "then say x"), asker(&ids, None))
            .await
            .is_ok(),
        "its circuit is closed"
    );
}

#[test]
fn thoughts_are_no_part_of_an_answer() {
    assert_eq!(visible("<think>a</think> b "), "b");
    assert_eq!(visible("a</think>b"), "b");
    assert_eq!(visible("b <think>never ends"), "b");
    assert_eq!(visible(" plain "), "plain");
}
