//! Asking aside: who is asked, who pays, and how long it may take.

use super::*;
use crate::clock::SystemClock;
use crate::ids::SeededIds;
use crate::models::{ModelEntry, ScriptedModel};

fn models(names: &[&str]) -> AsideModels {
    let entries = names.iter().map(|name| ModelEntry::new(*name, "scripted", "s"));
    let catalog = ModelCatalog::new(entries, Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::new("spare", "s")));
    AsideModels { catalog: Arc::new(catalog), breakers: Arc::default(), retry: RetryPolicy { max_attempts: 1, ..RetryPolicy::default() } }
}

fn question<'a>(models: &[&'a str], prompt: &str) -> Question<'a> {
    Question { models: models.to_vec(), system: "s", prompt: prompt.to_owned(), limit: Duration::from_secs(30) }
}

fn asker<'a>(ids: &'a SeededIds, sink: Option<&'a EventSink>) -> Asker<'a> {
    Asker { caller: "middleware:test", clock: &SystemClock, ids, sink }
}

#[tokio::test]
async fn the_first_model_that_answers_is_taken_and_its_call_is_told_but_not_its_tokens() {
    let ids = SeededIds::new(1);
    let (sink, mut events) = EventSink::channel();
    let asked = question(&["nobody", "a"], "[[usage 11,7]] say fine");
    let answer = models(&["a"]).ask(&asked, asker(&ids, Some(&sink))).await.unwrap();
    assert_eq!((answer.model.as_str(), answer.usage.unwrap().total()), ("a", 18));
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
    assert_eq!(told, ["error middleware:test", "request middleware:test a", "call middleware:test a"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_silent_is_given_up_and_the_next_one_asked() {
    let ids = SeededIds::new(1);
    let error = models(&["a"]).ask(&question(&["a"], "[[hang]]"), asker(&ids, None)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Stalled);
    assert!(models(&["a"]).ask(&question(&["a", "spare"], "then say x"), asker(&ids, None)).await.is_ok());
    let error = models(&[]).ask(&question(&["a"], "x"), asker(&ids, None)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Config);
}

#[test]
fn thoughts_are_no_part_of_an_answer() {
    assert_eq!(visible("<think>a</think> b "), "b");
    assert_eq!(visible("a</think>b"), "b");
    assert_eq!(visible("b <think>never ends"), "b");
    assert_eq!(visible(" plain "), "plain");
}
