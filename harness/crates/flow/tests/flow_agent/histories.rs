//! Histories of sessions in checkpoints: stored once, read as of a checkpoint, complete after a
//! takeover.

use std::collections::HashSet;

use deerflow_core::ids::ThreadId;
use deerflow_core::messages::Message;
use deerflow_flow::adapters::fake::FakeCall;
use deerflow_runtime::checkpoint::{HistoryQuery, Snapshot};
use deerflow_runtime::runs::{CheckpointRef, RunInput, RunRequest, WaitOutcome};
use serde_json::{Value, json};

use crate::bench::{Bench, values};
use crate::{APPROVAL, PAIR};

/// Returns a flow of ten nodes of one agent in a ring, which runs up to the limit of supersteps.
fn ring() -> String {
    let node = |n| format!("    - {{nodeId: n{n}, nodeKind: agent.sub, agentId: a}}\n");
    let edge = |n| format!("    - {{source: n{n}, target: n{}}}\n", (n + 1) % 10);
    format!(
        "meta: {{schemaVersion: '2.0', name: Ring}}\n\
         agents: {{agentDefs: [{{agentId: a, adapterKind: fake}}]}}\n\
         graph:\n  startNodeId: n0\n  nodes:\n{}  edges:\n{}",
        (0..10).map(node).collect::<String>(),
        (0..10).map(edge).collect::<String>()
    )
}

async fn checkpoints(bench: &Bench) -> Vec<Snapshot> {
    let query = HistoryQuery {
        limit: 1_000,
        ..HistoryQuery::default()
    };
    let newest_first = bench.checkpoints.list(&bench.thread, &query).await;
    let mut all = newest_first.expect("readable");
    all.reverse();
    all
}

/// Returns the bytes of a checkpoint without its messages.
fn size_of(snapshot: &Snapshot) -> usize {
    let own = json!([
        snapshot.state.channels(),
        snapshot.meta.machine,
        snapshot.meta.next
    ]);
    own.to_string().len()
}

/// Returns the bytes of the messages of all checkpoints, each counted once.
fn size_of_log(snapshots: &[Snapshot]) -> usize {
    let mut counted = HashSet::new();
    let mut bytes = 0;
    for state in snapshots.iter().map(|snapshot| &snapshot.state) {
        let conversation = state.messages().iter();
        let histories = state.histories().iter().flat_map(|(_, messages)| messages);
        let places = state.log_places().iter().copied();
        let places = places.chain(state.histories().log_places());
        for (message, place) in conversation.chain(histories).zip(places) {
            if counted.insert(place.expect("stored")) {
                bytes += message.json().get().len();
            }
        }
    }
    bytes
}

#[tokio::test]
async fn checkpoints_of_a_long_run_do_not_repeat_histories() {
    let answers = vec![json!({"text": "x".repeat(1 << 10)}); 10];
    let script = (0..10).map(|n| (format!("n{n}"), json!(answers)));
    let bench = Bench::new(&ring(), Value::Object(script.collect()));
    let end = bench.send(json!({"userPrompt": "Go"})).await;
    assert!(matches!(end, WaitOutcome::Failed { name, .. } if name == "recursion_limit"));
    let all = checkpoints(&bench).await;
    let sizes: Vec<usize> = all.iter().map(size_of).collect();
    assert!(sizes.len() >= 100, "{}", sizes.len());
    let (tenth, last) = (sizes[10], sizes[99]);
    assert!(last <= tenth + tenth / 5, "{tenth} {last}");
    let stored = sizes.iter().sum::<usize>() + size_of_log(&all);
    assert!(stored < 4_000_000, "{stored}");
    let (_, history) = all[99].state.histories().iter().next().expect("a history");
    assert_eq!(history.count(), 50);
}

#[tokio::test]
async fn fork_receives_the_history_as_of_its_checkpoint() {
    let bench = Bench::new(APPROVAL, json!({}));
    values(bench.send(json!({"userPrompt": "Write"})).await);
    let asked = checkpoints(&bench).await.pop().expect("a checkpoint");
    values(bench.run(RunInput::Resume(json!("revise"))).await);
    let request = RunRequest {
        input: RunInput::Resume(json!("publish")),
        checkpoint: Some(CheckpointRef {
            checkpoint_id: asked.meta.checkpoint_id,
        }),
        ..RunRequest::ask("flow-x", bench.thread.clone(), Message::human(""))
    };
    let end = bench.runs.create_and_wait(request).await.expect("valid").1;
    assert_eq!(values(end)["result"], "send/normal/1");
    let turn = |call| match call {
        FakeCall::Turn(turn) => Some((turn.node_id, turn.messages.len())),
        _ => None,
    };
    let turns: Vec<_> = bench.fake.calls().into_iter().filter_map(turn).collect();
    let expected = [("draft", 0), ("draft", 2), ("send", 2)];
    assert_eq!(turns, expected.map(|(node, seen)| (node.to_owned(), seen)));
}

#[tokio::test(start_paused = true)]
async fn finished_sibling_has_its_values_after_a_takeover() {
    let script = json!({"right": [{"hang": true}, {"text": "second"}]});
    let bench = Bench::new(PAIR, script);
    let copy = ThreadId::parse("t2").expect("valid");
    let copied = async {
        loop {
            let newest = bench.checkpoints.get(&bench.thread, None).await;
            let pending = newest.expect("readable").map(|newest| newest.meta.next);
            let nodes = pending.iter().flatten().map(|task| &*task.name);
            if nodes.eq(["right"]) {
                break bench.checkpoints.copy_thread(&bench.thread, &copy).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = bench.send(json!({"userPrompt": "x"})) => panic!("the run cannot end"),
        copied = copied => copied.expect("copied"),
    }
    let request = RunRequest {
        input: RunInput::Continue,
        ..RunRequest::ask("flow-x", copy.clone(), Message::human(""))
    };
    let end = bench.runs.create_and_wait(request).await.expect("valid").1;
    let end = values(end);
    assert_eq!(end["outputs"]["left"]["text"], "left/normal/1", "{end}");
    assert_eq!(end["result"], "left/normal/1");
    assert_eq!(bench.turns(), ["left", "right", "right"]);
    let newest = bench.checkpoints.get(&copy, None).await.expect("readable");
    let state = newest.expect("there").state;
    let agents: Vec<&str> = state.histories().iter().map(|(agent, _)| agent).collect();
    assert_eq!(agents, ["a", "b"]);
}
