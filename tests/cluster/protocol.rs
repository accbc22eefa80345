//! Readers of the streaming protocol that reconnect at random places to random nodes while nodes
//! die: no event is missing or repeated, and the fragments together are the thread's text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::{SeededRandom, setting};
use deerflow_tests::sse::SseStream;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::rig::{Cluster, Gateways, ScriptedReply, TIMEOUT, messages, text};

/// Number of threads that run and are read at the same time.
const AT_ONCE: usize = 6;
/// Maximum number of events that a connection reads before it is dropped.
const MOST_EVENTS: usize = 12;
/// One connection in this many reads from the start instead of from its position.
const REPLAYS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn protocol_readers_miss_and_repeat_nothing_while_nodes_die() {
    let wanted = usize::try_from(setting("RECONNECTS", 100)).expect("few");
    let seed = setting("SEED", 1);
    eprintln!("seed {seed}");
    let mut cluster = Cluster::of(3).await;
    let reconnects = Arc::new(AtomicUsize::new(0));
    let progress = Arc::new(Progress::default());
    let mut readers = JoinSet::new();
    for lane in 0..AT_ONCE {
        let (gateways, reconnects) = (cluster.gateways.clone(), reconnects.clone());
        let progress = progress.clone();
        let mut random = SeededRandom::of(seed * 1_000 + lane as u64);
        readers.spawn(async move {
            let mut threads = 0;
            // Each lane reads at least one thread.
            while threads == 0 || reconnects.load(Ordering::Relaxed) < wanted {
                let name = format!("s{seed}l{lane}t{threads}");
                read_thread(&gateways, &name, &mut random, &reconnects).await;
                threads += 1;
                progress.0[lane].store(threads, Ordering::Relaxed);
            }
            progress.0[lane].store(usize::MAX, Ordering::Relaxed);
            threads
        });
    }
    let (mut random, mut kills, mut threads) = (SeededRandom::of(seed), 0, 0);
    // Progress at the last kill and at the one before it.
    let (mut last, mut before) = (None, None);
    loop {
        tokio::select! {
            read = readers.join_next() => match read {
                Some(read) => threads += read.expect("no panic"),
                None => break,
            },
            // A run whose node dies three times fails, so a run meets two kills at most.
            () = progress.pause(random.millis(2_000, 6_000), before) => {
                (before, last) = (last, Some(progress.now()));
                let away = random.millis(0, 3_000);
                cluster.cut(random.below(3), away).await;
                kills += 1;
            }
        }
    }
    eprintln!(
        "{} reconnects on {threads} threads, {kills} kills, no gap, no repetition",
        reconnects.load(Ordering::Relaxed)
    );
    assert_eq!(cluster.model.rejections(), 0);
}

/// Number of threads that each lane has read; the maximum once it reads no more.
#[derive(Debug, Default)]
struct Progress([AtomicUsize; AT_ONCE]);

impl Progress {
    fn now(&self) -> [usize; AT_ONCE] {
        std::array::from_fn(|lane| self.0[lane].load(Ordering::Relaxed))
    }

    /// Waits for a time, and until each lane has read the thread that it read at `since`.
    async fn pause(&self, time: Duration, since: Option<[usize; AT_ONCE]>) {
        tokio::time::sleep(time).await;
        let has_ended = |(now, since)| now == usize::MAX || now > since;
        while since.is_some_and(|since| !self.now().into_iter().zip(since).all(has_ended)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Lets a new thread run, reads it over many connections, and compares what was read with a replay
/// and with the state.
async fn read_thread(
    gateways: &Gateways,
    name: &str,
    random: &mut SeededRandom,
    reconnects: &AtomicUsize,
) {
    let reply = ScriptedReply::new(name, 40 + random.below(40), Duration::from_millis(60));
    let reply = match random.below(2) {
        0 => reply,
        _ => reply.after_a_tool(),
    };
    let Some(thread) = start(gateways, random.below(3), &reply).await else {
        return;
    };
    let (mut log, begun) = (Log::default(), Instant::now());
    while !log.has_ended {
        assert!(
            begun.elapsed() < 2 * TIMEOUT,
            "{thread} does not end: {:?}",
            log.events.keys()
        );
        let since = (random.below(REPLAYS) > 0).then_some(log.last());
        let most = 1 + random.below(MOST_EVENTS);
        log.read(gateways, random.below(3), &thread, since, most)
            .await;
        reconnects.fetch_add(1, Ordering::Relaxed);
    }
    let mut replay = Log::default();
    while !replay.has_ended {
        replay = Log::default();
        replay
            .read(gateways, random.below(3), &thread, None, usize::MAX)
            .await;
    }
    assert_eq!(log.events, replay.events, "{thread}: the replay differs");
    let values = loop {
        let path = format!("/threads/{thread}/state");
        let state = gateways.try_ask(random.below(3), Method::GET, &path, &Value::Null);
        if let Ok((status, state)) = state.await
            && status == 200
        {
            break state["values"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    reply.assert_matches(&messages(&values));
    let answer = values["messages"].as_array().and_then(|all| all.last());
    let answer = text(&answer.expect("an answer")["id"]).to_owned();
    assert_eq!(
        log.text_of(&answer),
        reply.text,
        "{thread}: the fragments of {answer}"
    );
}

/// Starts a run on a new thread. Returns `None` if the node does not answer.
async fn start(gateways: &Gateways, node: usize, reply: &ScriptedReply) -> Option<String> {
    let nothing = json!({});
    let created = gateways.try_ask(node, Method::POST, "/threads", &nothing);
    let (_, created) = created.await.ok()?;
    let thread = created["thread_id"].as_str()?.to_owned();
    let params = json!({
        "assistant_id": "lead_agent",
        "input": { "messages": [{ "role": "user", "content": reply.prompt }] },
        "config": { "configurable": { "model_name": "fake", "mode": "flash" } },
    });
    let command = json!({ "id": 1, "method": "run.start", "params": params });
    let path = format!("/threads/{thread}/commands");
    let (_, answer) = gateways
        .try_ask(node, Method::POST, &path, &command)
        .await
        .ok()?;
    (answer["type"] == "success").then_some(thread)
}

/// Events of a thread by position, without the time at which a node converted them.
#[derive(Debug, Default)]
struct Log {
    events: BTreeMap<u64, Value>,
    has_ended: bool,
}

impl Log {
    fn last(&self) -> u64 {
        self.events.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Reads up to `most` new events on one connection, those after `since` or all.
    async fn read(
        &mut self,
        gateways: &Gateways,
        node: usize,
        thread: &str,
        since: Option<u64>,
        most: usize,
    ) {
        let channels = [
            "values",
            "updates",
            "messages",
            "tools",
            "lifecycle",
            "input",
            "custom",
        ];
        let mut body = json!({ "channels": channels });
        if let Some(since) = since {
            body["since"] = since.into();
        }
        let url = format!("{}/threads/{thread}/stream/events", gateways.urls[node]);
        let Ok(response) = gateways.client.post(url).json(&body).send().await else {
            // The node is down.
            tokio::time::sleep(Duration::from_millis(50)).await;
            return;
        };
        assert_eq!(response.status(), 200, "{thread}");
        let known_to = self.last();
        let (mut position, mut new) = (since.unwrap_or_default(), 0);
        let mut frames = SseStream::new(response);
        while new < most && !self.has_ended {
            // A connection breaks when its node dies.
            let Ok(Some(frame)) = frames.next_frame().await else {
                return;
            };
            let Some(mut event) = frame.data.as_ref().map(|_| frame.json().expect("JSON")) else {
                continue;
            };
            let seq = event["seq"].as_u64().expect("a position");
            assert!(seq > position, "{thread}: {seq} after {position}");
            position = seq;
            if let Some(params) = event["params"].as_object_mut() {
                params.shift_remove("timestamp");
            }
            if seq <= known_to {
                assert_eq!(
                    self.events.get(&seq),
                    Some(&event),
                    "{thread}: {seq} was not read"
                );
                continue;
            }
            self.has_ended = is_end(&event);
            let before = self.events.insert(seq, event);
            assert_eq!(before, None, "{thread}: {seq} was repeated");
            new += 1;
        }
    }

    /// Returns the fragments of a message together, from its last start on.
    fn text_of(&self, message: &str) -> String {
        let (mut joined, mut is_open) = (String::new(), false);
        for event in self
            .events
            .values()
            .filter(|event| event["method"] == "messages")
        {
            let data = &event["params"]["data"];
            match data["event"].as_str() {
                Some("message-start") => {
                    is_open = data["id"] == message;
                    if is_open {
                        joined.clear();
                    }
                }
                Some("content-block-delta") if is_open => {
                    joined.push_str(data["delta"]["text"].as_str().unwrap_or_default());
                }
                _ => {}
            }
        }
        joined
    }
}

/// Reports whether an event is the end of the run.
fn is_end(event: &Value) -> bool {
    let is_root = event["method"] == "lifecycle" && event["params"]["namespace"] == json!([]);
    let name = event["params"]["data"]["event"]
        .as_str()
        .unwrap_or_default();
    assert!(name != "failed" || !is_root, "the run failed: {event}");
    is_root && name == "completed"
}
