//! Frames of live output and of messages that are streamed at the same time.

use super::*;
use crate::agent::{LiveOutput, ModelCallRecord, OutputStream};
use crate::test_support::text_chunk;
use deerflow_core::clock::SystemClock;
use deerflow_core::ids::{RunId, ThreadId};

#[test]
fn live_output_is_sent_to_custom_viewers_only() {
    let piece = LiveOutput::ToolOutput {
        tool_call_id: "c1".to_owned(),
        tool: "bash".to_owned(),
        stream: OutputStream::Stdout,
        data: "x".to_owned(),
    };
    let event = AgentEvent::LiveOutput(Box::new(piece));
    let nested = AgentEvent::Nested("tools:1".into(), Box::new(event.clone()));
    let others = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::MessagesTuple,
        StreamMode::Checkpoints,
    ];
    for (modes, subgraphs, names) in [
        (vec![StreamMode::Custom], false, vec!["custom"]),
        (
            vec![StreamMode::Custom],
            true,
            vec!["custom", "custom|tools:1"],
        ),
        (others.to_vec(), true, vec![]),
    ] {
        let options = StreamOptions {
            modes: modes.into_iter().collect(),
            subgraphs,
            ..StreamOptions::default()
        };
        let mut encoder = ModeEncoder::new(options, Arc::new(SystemClock), || {
            unreachable!("the run is not requested")
        });
        let mut frames = Vec::new();
        encoder.encode(&event, &mut frames);
        encoder.encode(&nested, &mut frames);
        assert_eq!(
            frames.iter().map(|frame| &*frame.event).collect::<Vec<_>>(),
            names
        );
    }
}

fn encoder(mode: StreamMode) -> ModeEncoder {
    let options = StreamOptions {
        modes: [mode].into_iter().collect(),
        ..StreamOptions::default()
    };
    ModeEncoder::new(options, Arc::new(SystemClock), || RunFacts {
        run_id: RunId::parse("r1").unwrap(),
        thread_id: ThreadId::parse("t1").unwrap(),
        attempt: 1,
        assistant: "a".to_owned(),
        metadata: serde_json::Map::new(),
    })
}

fn meta(node: &str) -> Arc<MessageMeta> {
    Arc::new(MessageMeta {
        langgraph_node: node.to_owned(),
        langgraph_checkpoint_ns: format!("{node}:1"),
        ..MessageMeta::default()
    })
}

fn token(id: &str, text: &str, meta: &Arc<MessageMeta>) -> AgentEvent {
    AgentEvent::Token(Box::new(text_chunk(id, text)), meta.clone())
}

/// Returns the frames of the fragments of two nodes that stream at the same time.
fn interleaved(mode: StreamMode) -> Vec<(String, Value)> {
    let (a, b) = (meta("a"), meta("b"));
    let (mut encoder, mut frames) = (encoder(mode), Vec::new());
    for event in [
        token("m1", "one ", &a),
        token("m2", "uno ", &b),
        token("m1", "two", &a),
        token("m2", "due", &b),
    ] {
        encoder.encode(&event, &mut frames);
    }
    parsed(frames)
}

fn parsed(frames: Vec<Frame>) -> Vec<(String, Value)> {
    frames
        .into_iter()
        .map(|frame| {
            let data = serde_json::from_slice(&frame.data.into_bytes()).unwrap();
            (frame.event.into_owned(), data)
        })
        .collect()
}

#[test]
fn partial_messages_of_parallel_nodes_grow_independently() {
    let frames = interleaved(StreamMode::Messages);
    let partial: Vec<_> = frames
        .iter()
        .filter(|(event, _)| event == "messages/partial")
        .map(|(_, data)| (data[0]["id"].clone(), data[0]["content"].clone()))
        .collect();
    assert_eq!(
        json!(partial),
        json!([
            ["m1", "one "],
            ["m2", "uno "],
            ["m1", "one two"],
            ["m2", "uno due"]
        ])
    );
    let announced = frames
        .iter()
        .filter(|(event, _)| event == "messages/metadata");
    assert_eq!(announced.count(), 2);
}

#[test]
fn fragments_of_parallel_nodes_have_their_own_metadata() {
    let nodes: Vec<_> = interleaved(StreamMode::MessagesTuple)
        .iter()
        .map(|(_, data)| (data[0]["id"].clone(), data[1]["langgraph_node"].clone()))
        .collect();
    assert_eq!(
        json!(nodes),
        json!([["m1", "a"], ["m2", "b"], ["m1", "a"], ["m2", "b"]])
    );
}

#[test]
fn events_of_parallel_answers_belong_to_their_tasks() {
    let (mut encoder, mut frames) = (encoder(StreamMode::Events), Vec::new());
    let started = |node: &str, id: &str| {
        let task = Arc::new(Task {
            id: format!("{node}1"),
            node: node.to_owned(),
            step: 1,
            call: None,
        });
        let request = AgentEvent::ModelRequest {
            caller: "lead_agent".to_owned(),
            model: "small".to_owned(),
            message_count: 1,
            message_id: id.to_owned(),
        };
        let input = TaskInput::State(Arc::default());
        [AgentEvent::TaskStart(task, input), request]
    };
    let ended = |id: &str| {
        AgentEvent::ModelCall(ModelCallRecord {
            call_id: id.to_owned(),
            caller: "lead_agent".to_owned(),
            model: "small".to_owned(),
            message: Message::ai("x").with(|body| body.id = Some(id.to_owned())),
            usage: None,
            latency_ms: 1,
        })
    };
    let (a, b) = (meta("a"), meta("b"));
    let events = started("a", "m1")
        .into_iter()
        .chain(started("b", "m2"))
        .chain([
            token("m1", "one", &a),
            token("m2", "uno", &b),
            ended("m1"),
            token("m2", "due", &b),
            ended("m2"),
        ]);
    events.for_each(|event| encoder.encode(&event, &mut frames));
    let runs: Vec<(String, String)> = parsed(frames)
        .into_iter()
        .filter(|(_, data)| data["event"].as_str().unwrap().starts_with("on_chat_model"))
        .map(|(_, data)| {
            let node = data["metadata"]["langgraph_node"]
                .as_str()
                .unwrap()
                .to_owned();
            (data["event"].as_str().unwrap().to_owned(), node)
        })
        .collect();
    let expected = [
        ("start", "a"),
        ("start", "b"),
        ("stream", "a"),
        ("stream", "b"),
        ("end", "a"),
        ("stream", "b"),
        ("end", "b"),
    ];
    let expected =
        expected.map(|(event, node)| (format!("on_chat_model_{event}"), node.to_owned()));
    assert_eq!(runs, expected);
}
