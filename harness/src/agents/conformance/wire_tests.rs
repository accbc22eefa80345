//! Frames and checkpoints of the conformance agent's runs, compared with recordings of the
//! platform's server.

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
            WaitOutcome::Values(values) => serde_json::from_slice(&values).unwrap(),
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
async fn answer_writes_three_checkpoints_and_tool_turn_five() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let first = [
        r#"input -1 ["__start__"] (0)"#,
        r#"loop 0 ["model"] (1)"#,
        r#"loop 1 [] (2)"#,
    ];
    assert_eq!(describe(&rig.history().await), first);
    rig.wait(say(TOOL_TURN)).await;
    let second = [
        r#"input 2 ["__start__"] (2)"#,
        r#"loop 3 ["model"] (3)"#,
        r#"loop 4 ["tools"] (4)"#,
        r#"loop 5 ["model"] (5)"#,
        r#"loop 6 [] (6)"#,
    ];
    let history = rig.history().await;
    assert_eq!(describe(&history[3..]), second);
    assert!(
        history
            .windows(2)
            .all(|pair| pair[1].meta.parent_id.as_ref() == Some(&pair[0].meta.checkpoint_id))
    );
}

#[tokio::test]
async fn interrupt_is_stored_with_its_checkpoint() {
    let rig = rig();
    let interrupted = rig.wait(say(ASK)).await;
    let question = json!({ "value": { "question": "which one?" }, "id": interrupted["__interrupt__"][0]["id"], "response_schema": null });
    assert_eq!(interrupted["__interrupt__"], json!([question]));
    let history = rig.history().await;
    assert_eq!(
        describe(&history).last().unwrap(),
        r#"loop 1 ["tools"] (2)"#
    );
    assert_eq!(
        history.last().unwrap().meta.next[0].interrupts[0]["id"],
        question["id"]
    );
    let answered = rig.wait(go(RunInput::Resume(json!("red")))).await;
    assert_eq!(texts(&answered)[2..], ["red", "thanks"]);
    assert_eq!(
        describe(&rig.history().await)[3..],
        [r#"loop 2 ["model"] (3)"#, r#"loop 3 [] (4)"#]
    );
}

#[tokio::test]
async fn durability_determines_the_number_of_checkpoints() {
    for (durability, count) in [
        (Durability::Sync, 5),
        (Durability::Async, 5),
        (Durability::Exit, 1),
    ] {
        let rig = rig();
        rig.wait(RunRequest {
            durability,
            ..say(TOOL_TURN)
        })
        .await;
        let history = rig.history().await;
        assert_eq!(history.len(), count, "{durability:?}");
        let last = history.last().unwrap();
        assert_eq!((last.meta.step, last.state.messages().len()), (3, 4));
        rig.wait(RunRequest {
            durability,
            ..say(ASK)
        })
        .await;
        assert_eq!(
            rig.history().await.last().unwrap().meta.next[0]
                .interrupts
                .len(),
            1,
            "{durability:?}"
        );
        assert_eq!(
            texts(&rig.wait(go(RunInput::Resume(json!("x")))).await).last(),
            Some(&"thanks")
        );
    }
}

#[tokio::test]
async fn fork_starts_before_or_after_the_input() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let history = rig.history().await;
    let from = |at: usize| {
        Some(CheckpointRef {
            checkpoint_id: history[at].meta.checkpoint_id.clone(),
        })
    };
    let next_output = rig
        .wait(RunRequest {
            checkpoint: from(0),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(
        texts(&next_output),
        ["then say a", "a"],
        "the input of the following run is stored"
    );
    let other = rig
        .wait(RunRequest {
            checkpoint: from(0),
            ..say("then say b")
        })
        .await;
    assert_eq!(texts(&other), ["then say b", "b"]);
    let answer = rig
        .wait(RunRequest {
            checkpoint: from(1),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(texts(&answer), ["then say a", "a"]);
    let newest = rig.history().await;
    assert_eq!(
        newest.last().unwrap().meta.parent_id.as_ref(),
        Some(&history[1].meta.checkpoint_id)
    );
}

#[tokio::test]
async fn command_updates_the_thread_and_jumps_to_its_nodes() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let title = || StateUpdate::channel("title", json!("T"));
    let changed = rig
        .wait(go(RunInput::Command(ThreadCommand {
            update: title(),
            ..ThreadCommand::default()
        })))
        .await;
    assert_eq!(
        (&changed["title"], texts(&changed).len()),
        (&json!("T"), 2),
        "nothing is pending, so nothing runs"
    );
    let goto = |goto| ThreadCommand {
        goto,
        ..ThreadCommand::default()
    };
    let once_more = rig
        .wait(go(RunInput::Command(goto(vec![visit("model", None)]))))
        .await;
    assert_eq!(texts(&once_more), ["then say a", "a", "a"]);
    let call = json!({ "name": "bash", "args": { "command": "echo sent" }, "id": "c1" });
    let sent = rig
        .wait(go(RunInput::Command(goto(vec![
            visit("tools", Some(call)),
            visit("__end__", None),
        ]))))
        .await;
    assert_eq!(texts(&sent).last(), Some(&"sent"));
    assert!(rig.history().await.last().unwrap().meta.next.is_empty());
    let rejected = rig
        .wait(go(RunInput::Command(goto(vec![visit("nowhere", None)]))))
        .await;
    assert_eq!(rejected["error"], "InvalidUpdateError");
}

#[tokio::test]
async fn command_combines_resume_update_and_send() {
    let rig = rig();
    rig.wait(say(ASK)).await;
    let command = ThreadCommand {
        resume: Some(json!("red")),
        update: StateUpdate::channel("title", json!("T")),
        goto: vec![visit(
            "model",
            Some(json!({ "messages": [["user", "then say sent"]] })),
        )],
    };
    let values = rig.wait(go(RunInput::Command(command))).await;
    assert_eq!(texts(&values)[2..], ["red", "sent"]);
    assert_eq!(values["title"], "T");
    rig.wait(say(ASK)).await;
    let away = ThreadCommand {
        goto: vec![visit("model", None)],
        ..ThreadCommand::default()
    };
    let dropped = rig.wait(go(RunInput::Command(away))).await;
    assert!(dropped.get("__interrupt__").is_none());
}

#[tokio::test]
async fn task_events_come_in_pairs_and_name_their_calls() {
    let frames = rig().frames(say(TOOL_TURN), &[StreamMode::Tasks]).await;
    let names: Vec<&str> = frames
        .iter()
        .map(|(_, task)| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["model", "model", "tools", "tools", "model", "model"]
    );
    for pair in frames.chunks(2) {
        assert_eq!(
            keys(&pair[0].1),
            ["id", "name", "input", "triggers", "metadata"]
        );
        assert_eq!(
            keys(&pair[1].1),
            ["id", "name", "error", "result", "interrupts"]
        );
        assert_eq!(pair[0].1["id"], pair[1].1["id"]);
    }
    assert_eq!(frames[2].1["triggers"], json!(["__pregel_push"]));
    assert_eq!(
        frames[2].1["input"][0]["args"],
        json!({ "command": "echo hi" })
    );
    assert_eq!(frames[3].1["result"]["messages"][0]["content"], "hi");
    assert_eq!(
        frames[4].1["input"]["messages"].as_array().unwrap().len(),
        3
    );
}

#[tokio::test]
async fn parallel_calls_are_separate_tasks() {
    let both = r#"[[tools:[{"name":"ask_clarification","args":{"question":"p?"}},{"name":"bash","args":{"command":"echo q"}}]]] then say x"#;
    let rig = rig();
    let frames = rig
        .frames(say(both), &[StreamMode::Tasks, StreamMode::Updates])
        .await;
    let tools: Vec<&Value> = frames
        .iter()
        .filter(|(_, task)| task["name"] == "tools")
        .map(|(_, task)| task)
        .collect();
    assert_eq!(tools.len(), 4);
    assert_ne!(tools[0]["id"], tools[1]["id"]);
    let interrupted = &tools[2]["interrupts"][0];
    assert_eq!(
        (&interrupted["value"], &tools[2]["result"]),
        (&json!({ "question": "p?" }), &json!({}))
    );
    assert_eq!(
        frames.last().unwrap().1["__interrupt__"],
        json!([interrupted])
    );
    let updates: Vec<&(String, Value)> = frames
        .iter()
        .filter(|(event, _)| event == "updates")
        .collect();
    assert_eq!(keys(&updates[1].1), ["tools"]);
    let waiting = rig.history().await;
    let next = &waiting.last().unwrap().meta.next;
    assert_eq!(
        (next.len(), &next[0].id),
        (1, &tools[0]["id"].as_str().unwrap().to_owned())
    );
}

#[tokio::test]
async fn debug_mode_reports_checkpoints_and_tasks_per_step() {
    let frames = rig().frames(say("then say a"), &[StreamMode::Debug]).await;
    let described: Vec<(i64, &str)> = frames
        .iter()
        .map(|(_, frame)| {
            (
                frame["step"].as_i64().unwrap(),
                frame["type"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        described,
        [
            (-1, "checkpoint"),
            (0, "checkpoint"),
            (1, "task"),
            (1, "task_result"),
            (1, "checkpoint")
        ]
    );
    let first = &frames[0].1["payload"];
    assert_eq!(
        keys(first),
        [
            "config",
            "parent_config",
            "values",
            "metadata",
            "next",
            "tasks",
            "checkpoint",
            "parent_checkpoint"
        ]
    );
    assert_eq!(
        (&first["values"], &first["parent_config"]),
        (&json!({ "messages": [] }), &Value::Null)
    );
    assert_eq!(
        frames[4].1["payload"]["parent_checkpoint"],
        frames[1].1["payload"]["checkpoint"]
    );
}

#[tokio::test]
async fn modes_have_a_fixed_order_within_a_step() {
    let modes = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::Tasks,
        StreamMode::Checkpoints,
    ];
    let frames = rig().frames(say("then say a"), &modes).await;
    let names: Vec<&str> = frames.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(
        names,
        [
            "checkpoints",
            "values",
            "checkpoints",
            "tasks",
            "tasks",
            "updates",
            "values",
            "checkpoints"
        ]
    );
}

#[tokio::test]
async fn events_start_and_end_with_the_run_and_are_nested() {
    let frames = rig().frames(say(TOOL_TURN), &[StreamMode::Events]).await;
    let mut described: Vec<(&str, &str, usize)> = Vec::new();
    for (_, event) in &frames {
        assert_eq!(
            keys(event),
            [
                "event",
                "data",
                "name",
                "tags",
                "run_id",
                "metadata",
                "parent_ids"
            ]
        );
        let depth = event["parent_ids"].as_array().unwrap().len();
        let line = (
            event["event"].as_str().unwrap(),
            event["name"].as_str().unwrap(),
            depth,
        );
        if described.last() != Some(&line) {
            described.push(line);
        }
    }
    let model = frames
        .iter()
        .find(|(_, event)| event["event"] == "on_chat_model_start")
        .unwrap()
        .1["name"]
        .as_str()
        .unwrap();
    let asking = [
        ("on_chain_start", "model", 1),
        ("on_chat_model_start", model, 2),
        ("on_chat_model_stream", model, 2),
        ("on_chat_model_end", model, 2),
        ("on_chain_stream", "model", 1),
        ("on_chain_end", "model", 1),
    ];
    let calling = [
        ("on_chain_start", "tools", 1),
        ("on_tool_start", "bash", 2),
        ("on_tool_end", "bash", 2),
        ("on_chain_stream", "tools", 1),
        ("on_chain_end", "tools", 1),
    ];
    let (begin, end) = (
        [("on_chain_start", CONFORMANCE, 0)],
        [("on_chain_end", CONFORMANCE, 0)],
    );
    let expected: Vec<_> = begin
        .into_iter()
        .chain(asking)
        .chain(calling)
        .chain(asking)
        .chain(end)
        .collect();
    assert_eq!(described, expected);
}

#[tokio::test]
async fn nested_events_are_sent_only_with_subgraphs() {
    let spec = || say(r#"[[tool:task {"prompt":"then say inside"}]] then say outside"#);
    let modes = [
        StreamMode::Values,
        StreamMode::MessagesTuple,
        StreamMode::Updates,
    ];
    let silent = rig().frames(spec(), &modes).await;
    assert!(silent.iter().all(|(event, _)| !event.contains('|')));
    let frames = rig()
        .frames(
            RunRequest {
                stream_subgraphs: true,
                ..spec()
            },
            &modes,
        )
        .await;
    let inside: Vec<&(String, Value)> = frames
        .iter()
        .filter(|(event, _)| event.contains("|tools:"))
        .collect();
    let mut names: Vec<&str> = inside
        .iter()
        .map(|(event, _)| event.split('|').next().unwrap())
        .collect();
    names.dedup();
    assert_eq!(names, ["values", "messages", "updates", "values"]);
    assert_eq!(texts(&inside[0].1), ["then say inside"]);
    assert_eq!(
        texts(&inside.last().unwrap().1),
        ["then say inside", "inside"]
    );
}

#[tokio::test]
async fn breakpoint_writes_no_question_and_no_second_checkpoint() {
    let rig = rig();
    let stop = NodeSelector::Named(vec!["tools".to_owned()]);
    let frames = rig
        .frames(
            RunRequest {
                interrupt_before: stop,
                ..say(TOOL_TURN)
            },
            &[StreamMode::Updates, StreamMode::Values],
        )
        .await;
    assert_eq!(frames.last().unwrap().1, json!({ "__interrupt__": [] }));
    assert_eq!(
        describe(&rig.history().await).last().unwrap(),
        r#"loop 1 ["tools"] (2)"#
    );
    assert_eq!(rig.history().await.len(), 3);
    assert_eq!(
        texts(&rig.wait(go(RunInput::Continue)).await)[2..],
        ["hi", "done"]
    );
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

#[tokio::test]
async fn turn_on_a_long_thread_serializes_only_new_messages() {
    let rig = rig();
    let past = (0..250).flat_map(|n| {
        [
            Message::human(format!("question {n}")),
            Message::ai(format!("answer {n}")),
        ]
    });
    rig.wait(go(RunInput::Update(StateUpdate::messages(
        past.chain([Message::human("then say a")]),
    ))))
    .await;
    let before = SERIALIZED.get();
    let frames = rig.frames(say(TOOL_TURN), &[StreamMode::Values]).await;
    let lengths: Vec<usize> = frames
        .iter()
        .filter(|(event, _)| event == "values")
        .map(|(_, values)| texts(values).len())
        .collect();
    assert_eq!(lengths, [503, 504, 505, 506]);
    assert_eq!(
        SERIALIZED.get() - before,
        4,
        "the question, the call, its result and the answer"
    );
}
