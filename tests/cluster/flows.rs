//! Gateways that are killed while flows run: no run is lost, no finished node runs again, and no
//! turn with effects begins twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deerflow_tests::scripted_pi_mono::{RecordedTurn, ScriptedPiMono};
use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use deerflow_tests::sse::SseStream;
use serde_json::{Value, json};

use crate::rig::{
    Cluster, Gateways, TIMEOUT, limit, measures_times, on_postgres, p99, spread, text,
    through_redis,
};
use crate::takeover::TAKEN_OVER_WITHIN;

/// Maximum time from a request to cancel to the abort at the backend.
const ABORTED_WITHIN: Duration = Duration::from_secs(1);
/// Node whose turns have effects and no key.
const UNSAFE_NODE: &str = "order";
/// A branch whose turns are keyed, one whose turns must not be repeated, and one with a model.
const FLOW: &str = "
meta: {schemaVersion: '2.0', name: Branches}
agents:
  agentDefs:
    - {agentId: planner, adapterKind: pi-mono, adapterConfig: {effect: keyed}}
    - {agentId: keeper, adapterKind: pi-mono, adapterConfig: {effect: keyed}}
    - {agentId: buyer, adapterKind: pi-mono}
    - {agentId: writer, adapterKind: model}
runtime: {maxConcurrency: 3}
graph:
  startNodeId: plan
  nodes:
    - {nodeId: plan, nodeKind: agent.sub, agentId: planner}
    - {nodeId: keep, nodeKind: agent.sub, agentId: keeper}
    - {nodeId: order, nodeKind: agent.sub, agentId: buyer, config: {onError: continue, defaultOutput: unknown}}
    - {nodeId: write, nodeKind: agent.sub, agentId: writer}
    - {nodeId: join, nodeKind: control.join}
    - {nodeId: sum, nodeKind: agent.main, agentId: planner}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: plan, target: keep}
    - {source: plan, target: order}
    - {source: plan, target: write}
    - {source: keep, target: join}
    - {source: order, target: join}
    - {source: write, target: join}
    - {source: join, target: sum}
    - {source: sum, target: finish}
";

/// Gateways with the flow, and the backend of its agents.
struct Rig {
    cluster: Cluster,
    gateways: Gateways,
    backend: ScriptedPiMono,
}

/// Run of the flow, with the nodes that were finished when its gateway was killed.
struct Started {
    thread: String,
    run: String,
    finished: Vec<String>,
}

impl Rig {
    async fn start(nodes: usize, store: &str) -> Self {
        let backend = ScriptedPiMono::start(0).await.expect("backend");
        let adapters = format!("{{pi-mono: {{base_url: '{}'}}}}", backend.base_url());
        let sections = format!("{store}flows: {{adapters: {adapters}}}\n");
        let cluster = Cluster::with(nodes, &sections).await;
        let gateways = cluster.gateways.clone();
        let flow = json!({"id": "branches", "content": FLOW});
        gateways.post(0, "/flows", &flow).await;
        Self {
            cluster,
            gateways,
            backend,
        }
    }

    async fn begin(&self, node: usize, prompt: &str) -> Started {
        let thread = self.gateways.thread(node).await;
        let asked = json!({
            "assistant_id": "flow-branches",
            "input": {"userPrompt": prompt},
            "stream_mode": ["updates", "custom"],
            "stream_resumable": true,
        });
        let run = self.gateways.background(node, &thread, &asked).await;
        Started {
            thread,
            run,
            finished: Vec::new(),
        }
    }

    /// Reads which nodes of a run are finished.
    async fn note_finished(&self, started: &mut Started) {
        let state = self.state(0, &started.thread).await;
        let visits = state["values"]["visits"].as_object();
        started.finished = visits
            .into_iter()
            .flatten()
            .map(|(node, _)| node.clone())
            .collect();
    }

    async fn state(&self, node: usize, thread: &str) -> Value {
        let path = format!("/threads/{thread}/state");
        self.gateways.get(node, &path).await
    }

    fn turns_of(&self, run: &str) -> Vec<RecordedTurn> {
        let mut turns = self.backend.turns();
        turns.retain(|turn| turn.run == run);
        turns
    }

    /// Asserts that a run succeeded. Returns the number of its turns that began twice.
    async fn assert_complete(&self, node: usize, started: &Started, killed: Instant) -> usize {
        let Started { thread, run, .. } = started;
        let stored = self.gateways.ended(node, thread, run).await.expect("a run");
        assert_eq!(stored["status"], "success", "{stored}");
        let state = self.state(node, thread).await;
        let visits = json!({
            "plan": 1, "keep": 1, "order": 1, "write": 1, "join": 1, "sum": 1, "finish": 1,
        });
        assert_eq!(state["values"]["visits"], visits, "{state}");
        assert_eq!(self.gateways.visible_messages(node, thread).await.len(), 2);
        let mut by_node = BTreeMap::<String, Vec<RecordedTurn>>::new();
        for turn in self.turns_of(run) {
            by_node.entry(turn.node.clone()).or_default().push(turn);
        }
        for (node, turns) in &by_node {
            let mut invocations: Vec<_> = turns.iter().map(|turn| &turn.invocation).collect();
            invocations.dedup();
            assert_eq!(invocations.len(), 1, "a repetition has the id: {turns:?}");
            let again = turns.iter().any(|turn| turn.began > killed);
            let is_finished = started.finished.contains(node);
            assert!(!(is_finished && again), "{node} was finished: {turns:?}");
        }
        // A gateway that dies between its record and the request has begun no turn at the backend.
        let begun = by_node.get(UNSAFE_NODE).map_or(0, Vec::len);
        assert!(begun <= 1, "{by_node:?}");
        by_node.values().map(|turns| turns.len() - 1).sum()
    }

    /// Returns the time from a request to cancel to the abort at the backend.
    async fn time_to_abort(&self, node: usize) -> Duration {
        let Started { thread, run, .. } = self.begin(node, "[[hang]] stop").await;
        let waiting = Instant::now();
        while self.turns_of(&run).is_empty() {
            assert!(waiting.elapsed() < TIMEOUT, "the turn does not begin");
            // The other side is a process and cannot notify this one.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let asked = Instant::now();
        let cancel = format!("/threads/{thread}/runs/{run}/cancel?wait=1");
        self.gateways.post(node, &cancel, &json!({})).await;
        let turn = self.turns_of(&run).remove(0);
        let aborts = self.backend.aborts();
        let mut aborts = aborts.iter();
        let abort = aborts.find(|abort| abort.invocation == turn.invocation);
        abort.expect("an abort").at.duration_since(asked)
    }
}

#[tokio::test]
async fn killed_gateway_repeats_no_finished_node_of_flows() {
    let mut rig = Rig::start(1, "").await;
    let runs = usize::try_from(setting("RUNS", 4)).expect("few");
    let (mut rounds, mut repeated, mut doubted) = (0, 0, 0);
    let (mut resumed, mut aborted) = (Vec::new(), Vec::new());
    for seed in seeds(2) {
        eprintln!("seed {seed}");
        let mut random = SeededRandom::of(seed);
        let mut all = Vec::new();
        for index in 0..runs {
            let gap = 5 + random.below(40);
            let prompt = format!("[[slow 6x{gap}ms]] s{seed}r{index}");
            all.push(rig.begin(0, &prompt).await);
        }
        tokio::time::sleep(random.millis(0, 700)).await;
        for started in &mut all {
            rig.note_finished(started).await;
        }
        let killed = Instant::now();
        rig.cluster.cut(0, Duration::ZERO).await;
        for started in &all {
            repeated += rig.assert_complete(0, started, killed).await;
            let turns = rig.turns_of(&started.run);
            let next = turns
                .iter()
                .map(|turn| turn.began)
                .find(|began| *began > killed);
            resumed.extend(next.map(|began| began - killed));
            let state = rig.state(0, &started.thread).await;
            doubted += usize::from(state["values"]["errors"].to_string().contains(UNSAFE_NODE));
        }
        assert!(
            killed.elapsed() < limit(Duration::from_secs(30)),
            "seed {seed}"
        );
        aborted.push(rig.time_to_abort(0).await);
        rounds += 1;
    }
    eprintln!(
        "{rounds} rounds of {runs} runs, none lost; {repeated} keyed turns repeated, {doubted} turns in doubt; next turn: {}; abort: {}",
        spread(resumed.clone()),
        spread(aborted.clone()),
    );
    eprintln!(
        "{} of {} sessions were not disposed",
        rig.backend.sessions_open(),
        rig.backend.sessions_created(),
    );
    if measures_times() {
        let slowest = (p99(resumed), p99(aborted));
        eprintln!("p99: next turn {:.1?}, abort {:.1?}", slowest.0, slowest.1);
        assert!(slowest.0 < TAKEN_OVER_WITHIN && slowest.1 < ABORTED_WITHIN);
    }
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn flow_of_a_killed_node_continues_on_the_other() {
    let mut rig = Rig::start(2, &(on_postgres() + &through_redis())).await;
    for round in 0..setting("ROUNDS", 2) {
        let mut started = rig.begin(0, &format!("[[slow 20x50ms]] r{round}")).await;
        let (thread, run) = (started.thread.clone(), started.run.clone());
        let url = format!(
            "{}/threads/{thread}/runs/{run}/stream",
            rig.gateways.urls[1]
        );
        let request = rig.gateways.client.get(url).header("last-event-id", "-1");
        let mut viewer = SseStream::new(request.send().await.expect("answer"));
        let mut events = Vec::new();
        let mut killed = None;
        while let Some(frame) = viewer.next_frame().await.expect("frame") {
            assert_ne!(frame.name(), "gap", "{frame:?}");
            if frame.name() != "custom" {
                continue;
            }
            let event = frame.json().expect("json");
            events.push(format!("{} {}", text(&event["eventType"]), event["nodeId"]));
            if killed.is_none()
                && events
                    .iter()
                    .filter(|name| name.starts_with("agent_selected"))
                    .count()
                    == 4
            {
                rig.note_finished(&mut started).await;
                killed = Some(Instant::now());
                rig.cluster.nodes[0].kill9().await.expect("killed");
            }
        }
        let killed = killed.expect("the branches ran");
        assert_eq!(
            events.last().map(String::as_str),
            Some("run_completed null"),
            "{events:?}"
        );
        eprintln!("round {round}: complete after {:.1?}", killed.elapsed());
        assert_eq!(started.finished, ["plan"]);
        rig.assert_complete(1, &started, killed).await;
        assert!(rig.time_to_abort(1).await < limit(ABORTED_WITHIN));
        rig.cluster.nodes[0].restart().await.expect("healthy again");
    }
}
