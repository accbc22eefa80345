//! Frames and checkpoints of the conformance agent's runs, compared with recordings of the
//! platform's server.

#[path = "wire_checkpoint_tests.rs"]
mod checkpoint;
#[path = "wire_event_tests.rs"]
mod event;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use super::{CONFORMANCE, ConformanceAgent};
use crate::agents::StaticResolver;
use crate::clock::SystemClock;
use crate::ids::ThreadId;
use crate::messages::{Message, SERIALIZED};
use crate::models::{ModelCatalog, ScriptedModel};
use crate::runtime::checkpoint::{HistoryQuery, Snapshot};
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{
    CancelAction, CheckpointRef, Durability, GotoTarget, NodeSelector, RunInput, RunLimits,
    RunPresentation, RunRequest, RunsFacade, StreamMode, ThreadCommand, WaitOutcome,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::state::StateUpdate;

const TOOL_TURN: &str = r#"[[tool:bash {"command":"echo hi"}]] then say done"#;
const ASK: &str = r#"[[tool:ask_clarification {"question":"which one?"}]] then say thanks"#;

pub(super) struct Rig(pub(super) RunsFacade);

pub(super) fn rig() -> Rig {
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let agents = StaticResolver::new().with(CONFORMANCE, ConformanceAgent::new(Arc::new(models)));
    Rig(RunsFacade::new(
        runtime_in_memory(Arc::new(agents)).unwrap(),
        RunLimits::default(),
    ))
}

pub(super) fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

pub(super) fn say(text: &str) -> RunRequest {
    RunRequest::ask(CONFORMANCE, thread(), Message::human(text))
}

pub(super) fn go(input: RunInput) -> RunRequest {
    RunRequest { input, ..say("") }
}

fn visit(node: &str, input: Option<Value>) -> GotoTarget {
    GotoTarget {
        node: node.to_owned(),
        input,
    }
}

impl Rig {
    pub(super) async fn wait(&self, spec: RunRequest) -> Value {
        match self.0.create_and_wait(spec).await.unwrap().1 {
            WaitOutcome::Values(values) => serde_json::from_slice(&values.into_bytes()).unwrap(),
            WaitOutcome::Failed { name, message, .. } => {
                json!({ "error": name, "message": message })
            }
        }
    }

    /// Returns the frames of a run in these modes, without the first one, which contains the run
    /// id.
    pub(super) async fn frames(
        &self,
        spec: RunRequest,
        modes: &[StreamMode],
    ) -> Vec<(String, Value)> {
        let spec = RunRequest {
            stream_modes: modes.iter().copied().collect(),
            ..spec
        };
        let (_, stream) = self
            .0
            .create_and_stream(spec, Duration::from_secs(60))
            .await
            .unwrap();
        let items: Vec<StreamItem> = stream.items.collect().await;
        let frame = |item| match item {
            StreamItem::Event(event) => Some((
                event.event.to_string(),
                serde_json::from_slice(&event.data.into_bytes()).unwrap(),
            )),
            _ => None,
        };
        items.into_iter().filter_map(frame).skip(1).collect()
    }

    /// Returns the checkpoints of the thread, oldest first.
    pub(super) async fn history(&self) -> Vec<Snapshot> {
        let query = HistoryQuery {
            limit: 100,
            ..HistoryQuery::default()
        };
        let checkpoints = &self.0.runtime().ports().checkpointer;
        let mut all = checkpoints.list(&thread(), &query).await.unwrap();
        all.reverse();
        all
    }
}

/// Formats checkpoints as `source step [pending nodes] (messages)`.
pub(super) fn describe(history: &[Snapshot]) -> Vec<String> {
    let line = |snapshot: &Snapshot| {
        let next: Vec<&str> = snapshot
            .meta
            .next
            .iter()
            .map(|task| task.name.as_str())
            .collect();
        let source = json!(snapshot.meta.source);
        format!(
            "{} {} {next:?} ({})",
            source.as_str().unwrap(),
            snapshot.meta.step,
            snapshot.state.messages().len()
        )
    };
    history.iter().map(line).collect()
}

pub(super) fn texts(values: &Value) -> Vec<&str> {
    values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

pub(super) fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test]
async fn accumulated_messages_grow_until_complete() {
    let frames = rig().frames(say(TOOL_TURN), &[StreamMode::Messages]).await;
    let whole: Vec<&Value> = frames
        .iter()
        .filter(|(event, _)| event == "messages/complete")
        .map(|(_, data)| &data[0])
        .collect();
    assert_eq!(
        whole
            .iter()
            .map(|message| message["type"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["tool"]
    );
    let last = frames
        .iter()
        .rfind(|(event, _)| event == "messages/partial")
        .unwrap();
    assert_eq!(
        (&last.1[0]["content"], &last.1[0]["type"]),
        (&json!("done"), &json!("ai"))
    );
    let announced: Map<String, Value> = frames
        .iter()
        .filter(|(event, _)| event == "messages/metadata")
        .flat_map(|(_, data)| data.as_object().unwrap().clone())
        .collect();
    assert_eq!(announced.len(), 3);
    assert_eq!(
        announced
            .values()
            .map(|value| value["metadata"]["langgraph_step"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[tokio::test]
async fn message_metadata_is_sent_when_requested() {
    let metadata = json!({ "graph_id": "g", "team": { "n": 1 }, "langgraph_node": "mine" })
        .as_object()
        .cloned()
        .unwrap();
    let plain = rig()
        .frames(
            RunRequest {
                metadata: metadata.clone(),
                ..say(TOOL_TURN)
            },
            &[StreamMode::MessagesTuple],
        )
        .await;
    let with_metadata = || RunRequest {
        metadata: metadata.clone(),
        presentation: RunPresentation {
            describe_messages: true,
            ..RunPresentation::default()
        },
        ..say(TOOL_TURN)
    };
    let described = rig()
        .frames(with_metadata(), &[StreamMode::MessagesTuple])
        .await;
    let of_plain = plain
        .iter()
        .filter(|(event, _)| event == "messages")
        .map(|(_, pair)| pair[1].as_object().unwrap());
    let of_described = described
        .iter()
        .filter(|(event, _)| event == "messages")
        .map(|(_, pair)| pair[1].as_object().unwrap());
    for (bare, full) in of_plain.zip(of_described) {
        assert!(
            bare.get("graph_id").is_none() && bare.keys().all(|key| full.contains_key(key)),
            "{bare:?} {full:?}"
        );
        assert_eq!(
            (&full["graph_id"], &full["team"], &full["run_attempt"]),
            (&json!("g"), &json!({ "n": 1 }), &json!(1))
        );
        assert_eq!(full["langgraph_node"], bare["langgraph_node"]);
    }
    let frames = rig().frames(with_metadata(), &[StreamMode::Messages]).await;
    let announced = frames
        .iter()
        .find(|(event, _)| event == "messages/metadata")
        .unwrap()
        .1
        .as_object()
        .unwrap();
    assert!(
        announced
            .values()
            .all(|value| value["metadata"]["graph_id"] == "g"),
        "{announced:?}"
    );
}

#[tokio::test]
async fn cancel_preserves_the_input_and_names_active_tasks() {
    let rig = rig();
    for (input, checkpoints) in [
        (say("[[slow 1000x50ms]]").input, 2),
        (RunInput::Continue, 2),
    ] {
        let spec = RunRequest {
            keep_partial: false,
            ..go(input)
        };
        let (record, mut stream) = rig
            .0
            .create_and_stream(spec, Duration::from_secs(60))
            .await
            .unwrap();
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if event.event == "messages" {
                break;
            }
        }
        rig.0
            .cancel(None, &record.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let history = rig.history().await;
        assert_eq!(history.len(), checkpoints);
        assert_eq!(
            describe(&history).last().unwrap(),
            r#"loop 0 ["model"] (1)"#
        );
        assert_eq!(
            history.last().unwrap().meta.next[0].error.as_deref(),
            Some("CancelledError()")
        );
    }
}
