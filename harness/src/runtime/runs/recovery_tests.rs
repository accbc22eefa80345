//! What becomes of runs whose process is gone: over memory stores that two processes see one after the other.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::super::tests::{BEAT, as_user, over, spec, texts, thread};
use super::super::*;
use super::{Fate, LOST, fate};
use crate::messages::Message;
use crate::runtime::actor_context::Owner;
use crate::runtime::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart, AgentStream, AssistantInfo, RunContext, StepEvent, StopKind,
    UnknownAssistant,
};
use crate::runtime::checkpoint::PendingTask;
use crate::runtime::memory::{MemoryOptions, MemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::store::{EventQuery, NewRun, Recipe};
use crate::runtime::stream_bridge::{ResumeFrom, StreamItem};
use crate::state::StateUpdate;
use crate::testkit::{new_run, record};

/// Says "first", with a checkpoint, and hangs. Where that was said already it says "second" and is done.
#[derive(Debug)]
struct TwoSteps;

impl Agent for TwoSteps {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: mpsc::UnboundedReceiver<AgentEvent>) -> AgentStream {
        let driver = async move {
            let second = input.start == AgentStart::Continue && input.machine == Some(json!({ "said": 1 }));
            let text = if second { "second" } else { "first" };
            let update = StateUpdate::messages([Message::ai(text).with(|body| body.id = Some(ctx.ids.message_id()))]);
            let mut state = input.state;
            state.apply(update.clone(), &*ctx.ids)?;
            let next = if second { vec![] } else { vec![PendingTask::new("task-2", "model")] };
            let machine = json!({ "said": 1 });
            let (node, state) = ("model".to_owned(), Arc::new(state));
            ctx.sink.emit(AgentEvent::Step(StepEvent { node, update: Some(update), state, next, machine, checkpoint: true }));
            if !second {
                std::future::pending::<()>().await;
            }
            Ok(AgentOutcome { kind: StopKind::Completed, stop_reason: None })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned()]
    }
}

#[derive(Debug)]
struct OnlyTwoSteps;

#[async_trait]
impl AgentResolver for OnlyTwoSteps {
    async fn resolve(&self, _assistant: &str, _options: &Map<String, Value>) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(TwoSteps))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

fn process() -> RunsFacade {
    over(runtime_in_memory(Arc::new(OnlyTwoSteps)).unwrap())
}

/// The next process over the same stores; nothing else is left of `before`.
fn after(before: &RunsFacade) -> RunsFacade {
    before.parts().tasks.token().cancel();
    let bridge = Arc::new(MemoryStreamBridge::new(MemoryOptions::default()).unwrap());
    over(RuntimeParts { bridge, ..before.parts().clone() })
}

/// A run whose first step is durable, and which goes no farther here.
async fn stuck(process: &RunsFacade, spec: RunSpec) -> RunRecord {
    let spec = RunSpec { durability: Durability::Sync, ..spec };
    let (run, mut stream) = process.create_and_stream(spec, BEAT).await.unwrap();
    // With this durability a step is shown once it is stored.
    while let Some(item) = stream.items.next().await {
        if matches!(&item, StreamItem::Event(event) if &*event.event == "updates") {
            break;
        }
    }
    run
}

async fn stored(process: &RunsFacade, run: &RunRecord) -> RunRecord {
    process.parts().query.get(&run.run_id, &Owner::None).await.unwrap().unwrap()
}

async fn human_rows(process: &RunsFacade) -> usize {
    let query = EventQuery { limit: 100, event_types: vec!["llm.human.input".to_owned()], ..EventQuery::default() };
    process.parts().events.list(&thread(), &query, &Owner::None).await.unwrap().len()
}

#[tokio::test]
async fn a_run_goes_on_where_its_last_checkpoint_stands() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let mut stream = after.join_stream(None, &run.run_id, ResumeFrom::Start, BEAT).await.unwrap();
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
        let ended = stored(&after, &run).await;
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        assert_eq!(human_rows(&after).await, 1);
        let Some(StreamItem::Event(first)) = stream.items.next().await else { panic!("a metadata frame") };
        let first: Value = serde_json::from_slice(&first.data.into_bytes()).unwrap();
        assert_eq!(first["attempt"], 2);
        let Some(StreamItem::Event(snapshot)) = stream.items.next().await else { panic!("a snapshot") };
        let data: Value = serde_json::from_slice(&snapshot.data.into_bytes()).unwrap();
        assert_eq!((&*snapshot.event, data["messages"].as_array().map(Vec::len)), ("values", Some(2)));
    })
    .await;
}

#[tokio::test]
async fn a_run_that_had_not_begun_begins_with_the_input_that_was_accepted() {
    as_user(async {
        let before = process();
        let spec = spec("any");
        let recipe = Arc::new(Recipe { spec: spec.clone(), actor: crate::runtime::actor_context::ActorContext::user("ann") });
        before.parts().create.admit(NewRun { recipe, kwargs: spec.kwargs, ..new_run("left", "t1") }).await.unwrap();
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let left = after.get_run(None, &crate::testkit::run("left")).await.unwrap().unwrap();
        let mut stream = after.join_stream(None, &left.run_id, ResumeFrom::Start, BEAT).await.unwrap();
        let mut shown = None;
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if &*event.event == "updates" {
                shown = Some(event.data.into_bytes());
                break;
            }
        }
        assert!(String::from_utf8_lossy(&shown.unwrap()).contains("first"));
    })
    .await;
}

#[tokio::test]
async fn a_run_that_shall_not_go_on_ends_as_an_error_and_keeps_its_input() {
    as_user(async {
        let before = process();
        let run = stuck(&before, RunSpec { recovery: Some(Recovery::Fail), ..spec("any") }).await;
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let ended = stored(&after, &run).await;
        assert_eq!((ended.status, ended.stop_reason.as_deref()), (RunStatus::Error, Some(ORPHAN_RECOVERED)));
        let head = after.parts().checkpointer.get(&thread(), None).await.unwrap().unwrap();
        assert_eq!(head.state.messages()[0].content.text(), "hello");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_was_told_to_stop_before_its_process_died_is_interrupted() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        let told = before.parts().create.request_cancel(&run.run_id, CancelAction::Interrupt, before.parts().clock.now()).await;
        assert!(told.unwrap().is_some());
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        assert_eq!(stored(&after, &run).await.status, RunStatus::Interrupted);
        assert!(after.create_background(spec("any")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_handed_over_is_no_loss_and_goes_on() {
    as_user(async {
        let before = process();
        before.recover().await.unwrap();
        let run = stuck(&before, spec("any")).await;
        before.hand_over_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 0);
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_handed_over_and_then_told_to_stop_keeps_what_it_has() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        before.hand_over_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        before.cancel(None, &run.run_id, CancelAction::Interrupt, true).await.unwrap();
        assert_eq!(stored(&before, &run).await.status, RunStatus::Interrupted);
        let head = before.parts().checkpointer.get(&thread(), None).await.unwrap().unwrap();
        assert_eq!(head.state.messages().len(), 2);
    })
    .await;
}

#[test]
fn what_becomes_of_a_run_follows_from_its_losses_and_what_was_asked_for() {
    let (run, limits) = (record("r1", "t1"), RunLimits::default());
    let with = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = spec("any");
        change(&mut spec);
        spec
    };
    let plain = with(&|_| {});
    let exit = with(&|spec| spec.durability = Durability::Exit);
    let fail = with(&|spec| spec.recovery = Some(Recovery::Fail));
    assert_eq!(fate(&run, &exit, 0, &limits), Fate::Start);
    assert_eq!((fate(&run, &plain, 1, &limits), fate(&run, &plain, 2, &limits)), (Fate::Start, Fate::Start));
    assert!(matches!(fate(&run, &plain, 3, &limits), Fate::End(ATTEMPTS_EXHAUSTED, _)));
    assert_eq!(fate(&run, &exit, 1, &limits), Fate::End(NODE_LOST, LOST));
    assert_eq!(fate(&run, &fail, 1, &limits), Fate::End(ORPHAN_RECOVERED, LOST));
    let stopped = RunRecord { cancel: Some(CancelAction::Interrupt), ..run.clone() };
    assert_eq!(fate(&stopped, &plain, 1, &limits), Fate::End(ORPHAN_RECOVERED, LOST));
    let unforgiving = RunLimits { recovery: Recovery::Fail, ..limits };
    assert_eq!(fate(&run, &plain, 1, &unforgiving), Fate::End(ORPHAN_RECOVERED, LOST));
}
