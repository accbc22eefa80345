//! What viewers and readers get of the conformance agent's runs, beside what the platform's server was recorded to give.

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
use crate::runtime::memory::runtime_in_memory;
use crate::runtime::runs::{
    CancelAction, CheckpointRef, Durability, NodeSelector, RunCommand, RunInput, RunLimits,
    RunSpec, RunsFacade, StreamMode, Visit, WaitOutcome,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::state::StateUpdate;

const TALK: &str = r#"[[tool:bash {"command":"echo hi"}]] then say done"#;
const ASK: &str = r#"[[tool:ask_clarification {"question":"which one?"}]] then say thanks"#;

pub(super) struct House(pub(super) RunsFacade);

pub(super) fn house() -> House {
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let agents = StaticResolver::new().with(CONFORMANCE, ConformanceAgent::new(Arc::new(models)));
    House(RunsFacade::new(
        runtime_in_memory(Arc::new(agents)).unwrap(),
        RunLimits::default(),
    ))
}

pub(super) fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

pub(super) fn say(text: &str) -> RunSpec {
    RunSpec::ask(CONFORMANCE, thread(), Message::human(text))
}

pub(super) fn go(input: RunInput) -> RunSpec {
    RunSpec { input, ..say("") }
}

fn visit(node: &str, input: Option<Value>) -> Visit {
    Visit {
        node: node.to_owned(),
        input,
    }
}

impl House {
    pub(super) async fn wait(&self, spec: RunSpec) -> Value {
        match self.0.create_and_wait(spec).await.unwrap().1 {
            WaitOutcome::Values(values) => serde_json::from_slice(&values).unwrap(),
            WaitOutcome::Failed { name, message, .. } => {
                json!({ "error": name, "message": message })
            }
        }
    }

    /// The frames of a run in these modes, without the first, which names the run.
    pub(super) async fn frames(&self, spec: RunSpec, modes: &[StreamMode]) -> Vec<(String, Value)> {
        let spec = RunSpec {
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

    /// The thread's checkpoints, the oldest first.
    pub(super) async fn history(&self) -> Vec<Snapshot> {
        let query = HistoryQuery {
            limit: 100,
            ..HistoryQuery::default()
        };
        let mut all = self
            .0
            .parts()
            .checkpointer
            .list(&thread(), &query)
            .await
            .unwrap();
        all.reverse();
        all
    }
}

/// `source step [due nodes] (messages)` of checkpoints.
pub(super) fn told(history: &[Snapshot]) -> Vec<String> {
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
async fn a_plain_answer_leaves_three_checkpoints_and_a_tool_turn_five() {
    let house = house();
    house.wait(say("then say a")).await;
    let first = [
        r#"input -1 ["__start__"] (0)"#,
        r#"loop 0 ["model"] (1)"#,
        r#"loop 1 [] (2)"#,
    ];
    assert_eq!(told(&house.history().await), first);
    house.wait(say(TALK)).await;
    let second = [
        r#"input 2 ["__start__"] (2)"#,
        r#"loop 3 ["model"] (3)"#,
        r#"loop 4 ["tools"] (4)"#,
        r#"loop 5 ["model"] (5)"#,
        r#"loop 6 [] (6)"#,
    ];
    let history = house.history().await;
    assert_eq!(told(&history[3..]), second);
    assert!(
        history
            .windows(2)
            .all(|pair| pair[1].meta.parent_id.as_ref() == Some(&pair[0].meta.checkpoint_id))
    );
}

#[tokio::test]
async fn a_question_is_written_down_where_it_was_asked() {
    let house = house();
    let asked = house.wait(say(ASK)).await;
    let question = json!({ "value": { "question": "which one?" }, "id": asked["__interrupt__"][0]["id"], "response_schema": null });
    assert_eq!(asked["__interrupt__"], json!([question]));
    let history = house.history().await;
    assert_eq!(told(&history).last().unwrap(), r#"loop 1 ["tools"] (2)"#);
    assert_eq!(
        history.last().unwrap().meta.next[0].interrupts[0]["id"],
        question["id"]
    );
    let answered = house.wait(go(RunInput::Resume(json!("red")))).await;
    assert_eq!(texts(&answered)[2..], ["red", "thanks"]);
    assert_eq!(
        told(&house.history().await)[3..],
        [r#"loop 2 ["model"] (3)"#, r#"loop 3 [] (4)"#]
    );
}

#[tokio::test]
async fn durability_decides_how_many_checkpoints_a_run_leaves() {
    for (durability, count) in [
        (Durability::Sync, 5),
        (Durability::Async, 5),
        (Durability::Exit, 1),
    ] {
        let house = house();
        house
            .wait(RunSpec {
                durability,
                ..say(TALK)
            })
            .await;
        let history = house.history().await;
        assert_eq!(history.len(), count, "{durability:?}");
        let last = history.last().unwrap();
        assert_eq!((last.meta.step, last.state.messages().len()), (3, 4));
        house
            .wait(RunSpec {
                durability,
                ..say(ASK)
            })
            .await;
        assert_eq!(
            house.history().await.last().unwrap().meta.next[0]
                .interrupts
                .len(),
            1,
            "{durability:?}"
        );
        assert_eq!(
            texts(&house.wait(go(RunInput::Resume(json!("x")))).await).last(),
            Some(&"thanks")
        );
    }
}

#[tokio::test]
async fn a_fork_goes_on_from_before_or_after_the_input() {
    let house = house();
    house.wait(say("then say a")).await;
    let history = house.history().await;
    let from = |at: usize| {
        Some(CheckpointRef {
            checkpoint_id: history[at].meta.checkpoint_id.clone(),
        })
    };
    let again = house
        .wait(RunSpec {
            checkpoint: from(0),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(
        texts(&again),
        ["then say a", "a"],
        "the input that followed is taken"
    );
    let other = house
        .wait(RunSpec {
            checkpoint: from(0),
            ..say("then say b")
        })
        .await;
    assert_eq!(texts(&other), ["then say b", "b"]);
    let answer = house
        .wait(RunSpec {
            checkpoint: from(1),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(texts(&answer), ["then say a", "a"]);
    let newest = house.history().await;
    assert_eq!(
        newest.last().unwrap().meta.parent_id.as_ref(),
        Some(&history[1].meta.checkpoint_id)
    );
}

#[tokio::test]
async fn a_command_changes_the_thread_and_goes_where_it_says() {
    let house = house();
    house.wait(say("then say a")).await;
    let title = || StateUpdate::channel("title", json!("T"));
    let changed = house
        .wait(go(RunInput::Command(RunCommand {
            update: title(),
            ..RunCommand::default()
        })))
        .await;
    assert_eq!(
        (&changed["title"], texts(&changed).len()),
        (&json!("T"), 2),
        "nothing is due, so nothing runs"
    );
    let goto = |goto| RunCommand {
        goto,
        ..RunCommand::default()
    };
    let once_more = house
        .wait(go(RunInput::Command(goto(vec![visit("model", None)]))))
        .await;
    assert_eq!(texts(&once_more), ["then say a", "a", "a"]);
    let call = json!({ "name": "bash", "args": { "command": "echo sent" }, "id": "c1" });
    let sent = house
        .wait(go(RunInput::Command(goto(vec![
            visit("tools", Some(call)),
            visit("__end__", None),
        ]))))
        .await;
    assert_eq!(texts(&sent).last(), Some(&"sent"));
    assert!(house.history().await.last().unwrap().meta.next.is_empty());
    let lost = house
        .wait(go(RunInput::Command(goto(vec![visit("nowhere", None)]))))
        .await;
    assert_eq!(lost["error"], "InvalidUpdateError");
}

#[tokio::test]
async fn a_command_may_answer_change_and_send_at_once() {
    let house = house();
    house.wait(say(ASK)).await;
    let command = RunCommand {
        resume: Some(json!("red")),
        update: StateUpdate::channel("title", json!("T")),
        goto: vec![visit(
            "model",
            Some(json!({ "messages": [["user", "then say sent"]] })),
        )],
    };
    let values = house.wait(go(RunInput::Command(command))).await;
    assert_eq!(texts(&values)[2..], ["red", "sent"]);
    assert_eq!(values["title"], "T");
    house.wait(say(ASK)).await;
    let away = RunCommand {
        goto: vec![visit("model", None)],
        ..RunCommand::default()
    };
    let dropped = house.wait(go(RunInput::Command(away))).await;
    assert!(dropped.get("__interrupt__").is_none());
}

#[tokio::test]
async fn tasks_come_in_pairs_and_name_their_calls() {
    let frames = house().frames(say(TALK), &[StreamMode::Tasks]).await;
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
async fn parallel_calls_are_tasks_of_their_own() {
    let both = r#"[[tools:[{"name":"ask_clarification","args":{"question":"p?"}},{"name":"bash","args":{"command":"echo q"}}]]] then say x"#;
    let house = house();
    let frames = house
        .frames(say(both), &[StreamMode::Tasks, StreamMode::Updates])
        .await;
    let tools: Vec<&Value> = frames
        .iter()
        .filter(|(_, task)| task["name"] == "tools")
        .map(|(_, task)| task)
        .collect();
    assert_eq!(tools.len(), 4);
    assert_ne!(tools[0]["id"], tools[1]["id"]);
    let asked = &tools[2]["interrupts"][0];
    assert_eq!(
        (&asked["value"], &tools[2]["result"]),
        (&json!({ "question": "p?" }), &json!({}))
    );
    assert_eq!(frames.last().unwrap().1["__interrupt__"], json!([asked]));
    let updates: Vec<&(String, Value)> = frames
        .iter()
        .filter(|(event, _)| event == "updates")
        .collect();
    assert_eq!(keys(&updates[1].1), ["tools"]);
    let waiting = house.history().await;
    let next = &waiting.last().unwrap().meta.next;
    assert_eq!(
        (next.len(), &next[0].id),
        (1, &tools[0]["id"].as_str().unwrap().to_owned())
    );
}

#[tokio::test]
async fn debug_tells_checkpoints_and_tasks_step_by_step() {
    let frames = house()
        .frames(say("then say a"), &[StreamMode::Debug])
        .await;
    let told: Vec<(i64, &str)> = frames
        .iter()
        .map(|(_, frame)| {
            (
                frame["step"].as_i64().unwrap(),
                frame["type"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
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
async fn each_mode_stands_in_its_place_within_a_step() {
    let modes = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::Tasks,
        StreamMode::Checkpoints,
    ];
    let frames = house().frames(say("then say a"), &modes).await;
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
async fn events_begin_and_end_with_the_run_and_nest_by_their_parents() {
    let frames = house().frames(say(TALK), &[StreamMode::Events]).await;
    let mut told: Vec<(&str, &str, usize)> = Vec::new();
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
        if told.last() != Some(&line) {
            told.push(line);
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
    let wanted: Vec<_> = begin
        .into_iter()
        .chain(asking)
        .chain(calling)
        .chain(asking)
        .chain(end)
        .collect();
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn agents_inside_a_call_are_heard_under_its_namespace_only_when_asked_for() {
    let spec = || say(r#"[[tool:task {"prompt":"then say inside"}]] then say outside"#);
    let modes = [
        StreamMode::Values,
        StreamMode::MessagesTuple,
        StreamMode::Updates,
    ];
    let silent = house().frames(spec(), &modes).await;
    assert!(silent.iter().all(|(event, _)| !event.contains('|')));
    let frames = house()
        .frames(
            RunSpec {
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
async fn a_breakpoint_leaves_no_question_and_no_second_checkpoint() {
    let house = house();
    let stop = NodeSelector::Named(vec!["tools".to_owned()]);
    let frames = house
        .frames(
            RunSpec {
                interrupt_before: stop,
                ..say(TALK)
            },
            &[StreamMode::Updates, StreamMode::Values],
        )
        .await;
    assert_eq!(frames.last().unwrap().1, json!({ "__interrupt__": [] }));
    assert_eq!(
        told(&house.history().await).last().unwrap(),
        r#"loop 1 ["tools"] (2)"#
    );
    assert_eq!(house.history().await.len(), 3);
    assert_eq!(
        texts(&house.wait(go(RunInput::Continue)).await)[2..],
        ["hi", "done"]
    );
}

#[tokio::test]
async fn accumulated_messages_grow_and_only_whole_ones_are_complete() {
    let frames = house().frames(say(TALK), &[StreamMode::Messages]).await;
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
async fn messages_are_described_with_their_runs_metadata_where_that_is_wanted() {
    let metadata = json!({ "graph_id": "g", "team": { "n": 1 }, "langgraph_node": "mine" })
        .as_object()
        .cloned()
        .unwrap();
    let plain = house()
        .frames(
            RunSpec {
                metadata: metadata.clone(),
                ..say(TALK)
            },
            &[StreamMode::MessagesTuple],
        )
        .await;
    let wanted = || RunSpec {
        metadata: metadata.clone(),
        describe_messages: true,
        ..say(TALK)
    };
    let described = house().frames(wanted(), &[StreamMode::MessagesTuple]).await;
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
    let frames = house().frames(wanted(), &[StreamMode::Messages]).await;
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
async fn a_cancel_keeps_the_input_and_names_what_was_at_work() {
    let house = house();
    for (input, checkpoints) in [
        (say("[[slow 1000x50ms]]").input, 2),
        (RunInput::Continue, 2),
    ] {
        let spec = RunSpec {
            keep_partial: false,
            ..go(input)
        };
        let (record, mut stream) = house
            .0
            .create_and_stream(spec, Duration::from_secs(60))
            .await
            .unwrap();
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if event.event == "messages" {
                break;
            }
        }
        house
            .0
            .cancel(None, &record.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let history = house.history().await;
        assert_eq!(history.len(), checkpoints);
        assert_eq!(told(&history).last().unwrap(), r#"loop 0 ["model"] (1)"#);
        assert_eq!(
            history.last().unwrap().meta.next[0].error.as_deref(),
            Some("CancelledError()")
        );
    }
}

#[tokio::test]
async fn a_turn_on_a_long_thread_turns_only_its_own_messages_into_json() {
    let house = house();
    let past = (0..250).flat_map(|n| {
        [
            Message::human(format!("question {n}")),
            Message::ai(format!("answer {n}")),
        ]
    });
    house
        .wait(go(RunInput::Update(StateUpdate::messages(
            past.chain([Message::human("then say a")]),
        ))))
        .await;
    let before = SERIALIZED.get();
    let frames = house.frames(say(TALK), &[StreamMode::Values]).await;
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
