//! Client that behaves as the official SDKs do: it follows `Location` with `Last-Event-ID` when its
//! connection breaks, here always to another gateway, until `end`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deerflow_tests::sse::{SseFrame, SseStream};
use serde_json::{Value, json};

use crate::rig::{Gateways, ScriptedReply, body, messages, text, words};

/// Milliseconds that the SDK waits before each of its retries; their number is its maximum of retries.
const PAUSES: [u64; 5] = [1_000, 2_000, 4_000, 5_000, 5_000];

/// Everything that a client observed of one run.
#[derive(Debug, Default)]
pub(crate) struct ObservedStream {
    /// Name of this client in the history.
    name: String,
    pub(crate) thread: String,
    pub(crate) run: String,
    /// Ids of each connection, as (number, attempt).
    pub(crate) connections: Vec<Vec<(u64, u32)>>,
    /// Names of the frames without an id.
    pub(crate) unnumbered: Vec<String>,
    pub(crate) errors: Vec<String>,
    /// Text of each message, concatenated from its chunks.
    pieces: BTreeMap<String, String>,
    last_values: Value,
    /// Time of the first event of each attempt.
    pub(crate) attempts: BTreeMap<u32, Instant>,
}

/// Starts a run on `node` and follows it to its end. Returns `None` if the run was never
/// acknowledged.
pub(crate) async fn start_and_follow(
    gateways: Gateways,
    node: usize,
    thread: String,
    reply: ScriptedReply,
) -> Option<ObservedStream> {
    let url = format!("{}/threads/{thread}/runs/stream", gateways.urls[node]);
    let call = gateways.history.name("call");
    gateways.history.write(
        "asked",
        json!({"call": call, "thread": thread, "input": reply.prompt}),
    );
    let answer = gateways
        .client
        .post(url)
        .json(&body(&reply.prompt))
        .send()
        .await
        .ok()?;
    assert_eq!(answer.status(), 200, "a run on {thread}");
    let location = answer.headers()["location"]
        .to_str()
        .expect("text")
        .to_owned();
    let mut observed = ObservedStream {
        thread,
        run: run_of(&location),
        name: gateways.history.name("viewer"),
        ..ObservedStream::default()
    };
    gateways
        .history
        .write("accepted", json!({"call": call, "run": observed.run}));
    observed.read(&gateways, SseStream::new(answer)).await;
    observed.follow(&gateways, node + 1, &location).await;
    Some(observed)
}

/// Follows a run from its beginning, first on `node`.
pub(crate) async fn join(
    gateways: Gateways,
    node: usize,
    thread: String,
    run: String,
) -> ObservedStream {
    let location = format!("/threads/{thread}/runs/{run}/stream");
    let mut observed = ObservedStream {
        thread,
        run,
        name: gateways.history.name("viewer"),
        ..ObservedStream::default()
    };
    observed.follow(&gateways, node, &location).await;
    observed
}

fn run_of(location: &str) -> String {
    let rest = location.split_once("/runs/").expect("a run's address").1;
    rest.split('/').next().expect("an id").to_owned()
}

impl ObservedStream {
    fn is_over(&self) -> bool {
        self.unnumbered
            .iter()
            .any(|name| name == "end" || name == "gap")
    }

    pub(crate) fn has_a_gap(&self) -> bool {
        self.unnumbered.iter().any(|name| name == "gap")
    }

    fn cursor(&self) -> Option<String> {
        let (number, attempt) = self.connections.iter().flatten().last()?;
        Some(format!("{number}-{attempt}"))
    }

    async fn follow(&mut self, gateways: &Gateways, mut node: usize, location: &str) {
        let mut tries = 0;
        while !self.is_over() {
            let before = self.cursor();
            let at = node % gateways.urls.len();
            let request = gateways
                .client
                .get(format!("{}{location}", gateways.urls[at]));
            let request = request.header(
                "last-event-id",
                before.clone().unwrap_or_else(|| "-1".to_owned()),
            );
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                if status == 200 {
                    self.read(gateways, SseStream::new(answer)).await;
                } else {
                    let actual = answer.text().await.unwrap_or_default();
                    assert!(
                        status.is_server_error(),
                        "gateway {at}: {status} {actual} for {location}"
                    );
                }
            }
            if self.cursor() != before {
                tries = 0;
            }
            if !self.is_over() {
                let pause = PAUSES
                    .get(tries)
                    .unwrap_or_else(|| panic!("the client gave up on {location}: {self:?}"));
                tries += 1;
                tokio::time::sleep(Duration::from_millis(*pause)).await;
                node += 1;
            }
        }
    }

    /// Reads one connection until it ends or breaks.
    async fn read(&mut self, gateways: &Gateways, mut stream: SseStream) {
        gateways.history.write(
            "opened",
            json!({"viewer": self.name, "run": self.run, "after": self.cursor()}),
        );
        self.connections.push(Vec::new());
        while let Ok(Some(frame)) = stream.next_frame().await {
            self.record(gateways, &frame);
            self.take(&frame);
        }
        gateways
            .history
            .write("broke", json!({"viewer": self.name}));
    }

    fn record(&self, gateways: &Gateways, frame: &SseFrame) {
        let viewer = json!({"viewer": self.name});
        match (&frame.id, frame.name()) {
            (Some(id), name) => {
                let mut event = json!({"viewer": self.name, "id": id, "event": name});
                let data = if name == "messages" {
                    frame.json().expect("json")
                } else {
                    Value::Null
                };
                if data[0]["type"] == "AIMessageChunk" {
                    event["message"] = data[0]["id"].clone();
                    event["text"] = json!(words(&data[0]));
                }
                gateways.history.write("event", event);
            }
            (None, "end") => gateways.history.write("ended", viewer),
            (None, "gap") => gateways.history.write("gap", viewer),
            (None, _) => {}
        }
    }

    fn take(&mut self, frame: &SseFrame) {
        if frame.is_comment() {
            return;
        }
        match &frame.id {
            Some(id) => {
                let (number, attempt) = id.split_once('-').expect("number-attempt");
                let (number, attempt) = (
                    number.parse().expect("a number"),
                    attempt.parse().expect("an attempt"),
                );
                self.connections
                    .last_mut()
                    .expect("a connection")
                    .push((number, attempt));
                self.attempts.entry(attempt).or_insert_with(Instant::now);
            }
            None => self.unnumbered.push(frame.name().to_owned()),
        }
        match frame.name() {
            "values" => self.last_values = frame.json().expect("json"),
            "messages" => {
                let chunk = frame.json().expect("json")[0].take();
                if chunk["type"] == "AIMessageChunk" {
                    self.pieces
                        .entry(text(&chunk["id"]).to_owned())
                        .or_default()
                        .push_str(&words(&chunk));
                }
            }
            "error" => self.errors.push(frame.data.clone().unwrap_or_default()),
            _ => {}
        }
    }

    /// Asserts that no event was missed, repeated or reordered, and that `end` came once after the
    /// whole answer.
    #[track_caller]
    pub(crate) fn is_whole(&self, reply: &ScriptedReply) {
        self.is_numbered();
        self.has_all_of(reply);
    }

    /// Asserts as [`ObservedStream::is_whole`] does, for an owner that was cut off from every server and
    /// then lost: a later attempt may replace events that only the owner's own viewers received.
    #[track_caller]
    pub(crate) fn is_whole_except_replaced_tail(&self, reply: &ScriptedReply) {
        let mut next = (1, 1);
        for (number, attempt) in self.connections.iter().flatten().copied() {
            let follows = if attempt > next.1 {
                (2..=next.0).contains(&number)
            } else {
                (number, attempt) == next
            };
            assert!(
                follows,
                "{number}-{attempt} where {next:?} was expected, {}/{}: {:?}",
                self.thread, self.run, self.connections
            );
            next = (number + 1, attempt);
        }
        self.has_all_of(reply);
    }

    #[track_caller]
    fn has_all_of(&self, reply: &ScriptedReply) {
        self.is_complete(reply);
        assert!(
            self.pieces.values().any(|piece| *piece == reply.text),
            "the chunks of {} do not form the whole text: {:?}",
            self.run,
            self.pieces
        );
        for piece in self.pieces.values() {
            assert!(
                reply.text.starts_with(piece.as_str()),
                "{}: mixed text {piece:?}",
                self.run
            );
        }
    }

    /// Asserts that `end` came once, after the whole answer.
    #[track_caller]
    pub(crate) fn is_complete(&self, reply: &ScriptedReply) {
        assert_eq!(self.unnumbered, ["end"], "{}/{}", self.thread, self.run);
        assert!(
            self.errors.is_empty(),
            "{}/{}: {:?}",
            self.thread,
            self.run,
            self.errors
        );
        assert_eq!(
            messages(&self.last_values).last().map(|last| &last.1),
            Some(&reply.text),
            "{}/{}",
            self.thread,
            self.run
        );
    }

    /// Asserts that sequence numbers rise by one from 1 on, over all connections.
    #[track_caller]
    pub(crate) fn is_numbered(&self) {
        for (expected, (number, _)) in (1..).zip(self.connections.iter().flatten()) {
            assert_eq!(
                *number, expected,
                "{}/{}: {:?}",
                self.thread, self.run, self.connections
            );
        }
    }

    /// Returns the time from `moment` to the first event of a later attempt.
    pub(crate) fn taken_over_after(&self, moment: Instant) -> Option<Duration> {
        let later = self.attempts.iter().find(|(attempt, _)| **attempt > 1)?;
        Some(later.1.saturating_duration_since(moment))
    }
}
