//! States of threads with flows: writes as a node, `goto`, forks, breakpoints and sub-flows.

use serde_json::{Value, json};

use crate::flows::{CHAIN, store};
use crate::rig::{Rig, text, until};

/// Calls another flow, whose second node does not end by itself.
const OUTER: &str = "
meta: {schemaVersion: '2.0', name: Outer}
agents: {agentDefs: []}
graph:
  startNodeId: call
  nodes:
    - {nodeId: call, nodeKind: control.subflow, config: {flowId: inner}}
    - {nodeId: finish, nodeKind: control.finish}
  edges: [{source: call, target: finish}]
";
const INNER: &str = "
meta: {schemaVersion: '2.0', name: Inner}
agents: {agentDefs: [{agentId: a, adapterKind: model}, {agentId: b, adapterKind: model}]}
graph:
  startNodeId: one
  nodes:
    - {nodeId: one, nodeKind: agent.sub, agentId: a, config: {userPrompt: then say one}}
    - {nodeId: two, nodeKind: agent.sub, agentId: b, config: {userPrompt: '[[slow 40x1ms]][[hold 5]] on'}}
  edges: [{source: one, target: two}]
";
/// Two branches of which one does not end by itself.
const BRANCHES: &str = "
meta: {schemaVersion: '2.0', name: Branches}
agents: {agentDefs: [{agentId: a, adapterKind: model}, {agentId: b, adapterKind: model}]}
runtime: {maxConcurrency: 2}
graph:
  startNodeId: split
  nodes:
    - {nodeId: split, nodeKind: control.parallel}
    - {nodeId: slow, nodeKind: agent.sub, agentId: a, config: {userPrompt: '[[slow 40x1ms]][[hold 5]] on'}}
    - {nodeId: quick, nodeKind: agent.sub, agentId: b, config: {userPrompt: then say quick}}
    - {nodeId: join, nodeKind: control.join}
  edges:
    - {source: split, target: slow}
    - {source: split, target: quick}
    - {source: slow, target: join}
    - {source: quick, target: join}
";

fn asking(flow: &str, prompt: &str) -> Value {
    json!({"assistant_id": flow, "input": {"userPrompt": prompt}})
}

/// A thread of [`CHAIN`] that waits at its question.
async fn waiting(rig: &Rig) -> String {
    store(rig, "chain", CHAIN).await;
    let thread = rig.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    rig.post(&wait, &asking("flow-chain", "then say polished"))
        .await
        .ok();
    thread
}

async fn state(rig: &Rig, thread: &str) -> Value {
    let path = format!("/threads/{thread}/state?subgraphs=true");
    rig.get(&path).await.ok()
}

/// Bodies of the requests that reached the model.
fn requests(rig: &Rig) -> Vec<String> {
    let requests = rig.model.requests().into_iter();
    requests.map(|request| format!("{request:?}")).collect()
}

fn count(rig: &Rig, word: &str) -> usize {
    requests(rig)
        .iter()
        .filter(|request| request.contains(word))
        .count()
}

async fn go_on(rig: &Rig, thread: &str, request: Value) -> Value {
    let mut body = json!({"assistant_id": "flow-chain"});
    for (key, value) in request.as_object().expect("fields") {
        body[key] = value.clone();
    }
    rig.post(&format!("/threads/{thread}/runs/wait"), &body)
        .await
        .ok()
}

#[tokio::test]
async fn write_as_a_node_sets_its_ports_and_follows_its_edges() {
    let rig = Rig::start().await;
    let thread = waiting(&rig).await;
    let path = format!("/threads/{thread}/state");
    let write = json!({"values": {"out": "by hand"}, "as_node": "draft"});
    rig.post(&path, &write).await.ok();
    let after = state(&rig, &thread).await;
    assert_eq!(after["next"], json!(["gate"]), "{after}");
    assert_eq!(after["values"]["outputs"]["draft"]["text"], "by hand");
    assert_eq!(after["metadata"]["source"], "update");
    let answer = json!({"values": {"response": "yes"}, "as_node": "gate"});
    rig.post(&path, &answer).await.ok();
    assert_eq!(state(&rig, &thread).await["next"], json!(["polish"]));
    let end = go_on(&rig, &thread, json!({"input": null})).await;
    assert_eq!(
        end["visits"],
        json!({"draft": 2, "gate": 1, "polish": 1, "finish": 1})
    );
    let last = requests(&rig).pop().expect("a request");
    assert!(last.contains("by hand"), "{last}");
}

#[tokio::test]
async fn write_as_a_node_that_does_not_fit_is_refused_with_its_place() {
    let rig = Rig::start().await;
    let thread = waiting(&rig).await;
    let path = format!("/threads/{thread}/state");
    for (write, status, word) in [
        (
            json!({"values": {"nope": 1}, "as_node": "draft"}),
            422,
            "nope",
        ),
        (
            json!({"values": {"out": 1}, "as_node": "ghost"}),
            422,
            "ghost",
        ),
        (
            json!({"values": {"response": "maybe"}, "as_node": "gate"}),
            422,
            "gate",
        ),
    ] {
        let refused = rig.post(&path, &write).await;
        assert_eq!(refused.status.as_u16(), status, "{}", refused.text);
        assert!(refused.text.contains(word), "{}", refused.text);
    }
    assert_eq!(state(&rig, &thread).await["next"], json!(["gate"]));
}

#[tokio::test]
async fn goto_runs_one_node_on_the_values_as_they_are() {
    let rig = Rig::start().await;
    let thread = waiting(&rig).await;
    let end = go_on(&rig, &thread, json!({"command": {"goto": "polish"}})).await;
    assert_eq!(end["visits"], json!({"draft": 1, "polish": 1, "finish": 1}));
    let refused = json!({"assistant_id": "flow-chain", "command": {"goto": "ghost"}});
    let refused = rig
        .post(&format!("/threads/{thread}/runs/wait"), &refused)
        .await;
    assert!(refused.text.contains("ghost"), "{}", refused.text);
}

#[tokio::test]
async fn fork_from_a_checkpoint_takes_the_other_way() {
    let rig = Rig::start().await;
    let thread = waiting(&rig).await;
    let at = state(&rig, &thread).await["checkpoint"]["checkpoint_id"].clone();
    let first = go_on(&rig, &thread, json!({"command": {"resume": "yes"}})).await;
    assert_eq!(first["visits"]["polish"], 1);
    let fork = json!({"command": {"resume": "no"}, "checkpoint_id": at});
    let second = go_on(&rig, &thread, fork).await;
    assert_eq!(
        second["visits"],
        json!({"draft": 1, "gate": 1, "finish": 1}),
        "{second}"
    );
    let fork = json!({"input": {"userPrompt": "then say again"}, "checkpoint_id": at});
    let third = go_on(&rig, &thread, fork).await;
    assert_eq!(
        third["__interrupt__"][0]["value"]["nodeId"], "gate",
        "{third}"
    );
}

#[tokio::test]
async fn breakpoints_stop_before_and_after_nodes() {
    let rig = Rig::start().await;
    let thread = waiting(&rig).await;
    let stop = json!({"command": {"resume": "yes"}, "interrupt_before": ["polish"]});
    go_on(&rig, &thread, stop).await;
    assert_eq!(state(&rig, &thread).await["next"], json!(["polish"]));
    let stop = json!({"input": null, "interrupt_after": ["polish"]});
    let stopped = go_on(&rig, &thread, stop).await;
    assert_eq!(stopped["visits"]["polish"], 1, "{stopped}");
    assert_eq!(state(&rig, &thread).await["next"], json!(["finish"]));
    let end = go_on(&rig, &thread, json!({"input": null})).await;
    assert_eq!(end["result"], end["outputs"]["polish"]["text"]);
}

#[tokio::test]
async fn finished_branch_is_not_next_and_survives_a_power_cut() {
    let mut rig = Rig::start().await;
    store(&rig, "branches", BRANCHES).await;
    let thread = rig.thread().await;
    let run = rig
        .background(&thread, &asking("flow-branches", "go"))
        .await;
    let waits = async |rig: &Rig| {
        until("the quick branch", async || {
            (state(rig, &thread).await["next"] == json!(["slow"])).then_some(())
        })
        .await
    };
    waits(&rig).await;
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("healthy again");
    waits(&rig).await;
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    let values = rig.values(&thread).await;
    assert_eq!(values["outputs"]["quick"]["text"], "quick go", "{values}");
    let all = json!({"split": 1, "slow": 1, "quick": 1, "join": 1});
    assert_eq!(values["visits"], all);
    assert_eq!(count(&rig, "then say quick"), 1);
}

#[tokio::test]
async fn sub_flow_shows_its_state_and_survives_a_power_cut() {
    let mut rig = Rig::start().await;
    store(&rig, "inner", INNER).await;
    store(&rig, "outer", OUTER).await;
    let thread = rig.thread().await;
    let run = rig.background(&thread, &asking("flow-outer", "go")).await;
    let inside = async |rig: &Rig| {
        until("the second inner node", async || {
            let outer = state(rig, &thread).await;
            let inner = outer["tasks"][0]["state"].clone();
            (inner["next"] == json!(["two"])).then_some(inner)
        })
        .await
    };
    let inner = inside(&rig).await;
    assert_eq!(
        inner["values"]["outputs"]["one"]["text"], "one go",
        "{inner}"
    );
    let namespace = text(&inner["checkpoint"]["checkpoint_ns"]).to_owned();
    assert!(namespace.starts_with("call:"), "{namespace}");
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("healthy again");
    inside(&rig).await;
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    assert_eq!(count(&rig, "then say one"), 1);
    let nodes = format!("/threads/{thread}/runs/{run}/nodes");
    let timeline = rig.get(&nodes).await.ok();
    let ids: Vec<&str> = timeline["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| text(&node["nodeId"]))
        .collect();
    assert_eq!(ids, ["call", "finish", "call/one", "call/two"]);
}

#[tokio::test]
async fn events_of_a_sub_flow_stream_under_its_namespace() {
    let rig = Rig::start().await;
    let quick = INNER.replace("[[slow 40x1ms]][[hold 5]] on", "then say two");
    store(&rig, "inner", &quick).await;
    store(&rig, "outer", OUTER).await;
    let thread = rig.thread().await;
    let mut ask = asking("flow-outer", "go");
    ask["stream_mode"] = json!([
        "updates",
        "messages-tuple",
        "tasks",
        "custom",
        "checkpoints"
    ]);
    ask["stream_subgraphs"] = true.into();
    let frames = rig.run(&thread, &ask).await.frames;
    let count = |mode: &str| {
        let inside = format!("{mode}|call:");
        frames
            .iter()
            .filter_map(|frame| frame.event.as_deref())
            .filter(|event| event.starts_with(&inside))
            .count()
    };
    assert_eq!(count("updates"), 2, "{frames:?}");
    assert_eq!(count("tasks"), 4);
    assert!(count("messages") > 0 && count("checkpoints") > 2);
    assert_eq!(count("custom"), 0, "events of nodes belong to the run");
}
