//! A client that behaves as the official SDKs do: it follows `Location` with `Last-Event-ID` when its connection breaks, here
//! always to another gateway, until `end`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deerflow_tests::sse::{SseFrame, SseStream};
use serde_json::{Value, json};

use crate::rig::{Story, Web, body, messages, text, words};

/// The SDK's pauses before it tries again, and how many tries it has.
const PAUSES: [u64; 5] = [1_000, 2_000, 4_000, 5_000, 5_000];

/// What a client saw of one run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What the history calls this client.
    name: String,
    pub(crate) thread: String,
    pub(crate) run: String,
    /// The ids of each connection, as (number, attempt).
    pub(crate) connections: Vec<Vec<(u64, u32)>>,
    /// Names of the frames without an id.
    pub(crate) unnumbered: Vec<String>,
    pub(crate) errors: Vec<String>,
    /// The text of each message, put together from its pieces.
    pieces: BTreeMap<String, String>,
    last_values: Value,
    /// When the first event of each attempt came.
    pub(crate) attempts: BTreeMap<u32, Instant>,
}

/// Starts a run on `node` and follows it to its end. `None` when it was never acknowledged.
pub(crate) async fn tell(web: Web, node: usize, thread: String, story: Story) -> Option<Seen> {
    let url = format!("{}/threads/{thread}/runs/stream", web.urls[node]);
    let call = web.history.name("call");
    web.history.write(
        "asked",
        json!({"call": call, "thread": thread, "input": story.prompt}),
    );
    let answer = web
        .client
        .post(url)
        .json(&body(&story.prompt))
        .send()
        .await
        .ok()?;
    assert_eq!(answer.status(), 200, "a run on {thread}");
    let location = answer.headers()["location"]
        .to_str()
        .expect("text")
        .to_owned();
    let mut seen = Seen {
        thread,
        run: run_of(&location),
        name: web.history.name("viewer"),
        ..Seen::default()
    };
    web.history
        .write("accepted", json!({"call": call, "run": seen.run}));
    seen.read(&web, SseStream::new(answer)).await;
    seen.follow(&web, node + 1, &location).await;
    Some(seen)
}

/// Follows a run from its beginning, first on `node`.
pub(crate) async fn join(web: Web, node: usize, thread: String, run: String) -> Seen {
    let location = format!("/threads/{thread}/runs/{run}/stream");
    let mut seen = Seen {
        thread,
        run,
        name: web.history.name("viewer"),
        ..Seen::default()
    };
    seen.follow(&web, node, &location).await;
    seen
}

fn run_of(location: &str) -> String {
    let rest = location.split_once("/runs/").expect("a run's address").1;
    rest.split('/').next().expect("an id").to_owned()
}

impl Seen {
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

    async fn follow(&mut self, web: &Web, mut node: usize, location: &str) {
        let mut tries = 0;
        while !self.is_over() {
            let before = self.cursor();
            let at = node % web.urls.len();
            let request = web.client.get(format!("{}{location}", web.urls[at]));
            let request = request.header(
                "last-event-id",
                before.clone().unwrap_or_else(|| "-1".to_owned()),
            );
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                if status == 200 {
                    self.read(web, SseStream::new(answer)).await;
                } else {
                    let told = answer.text().await.unwrap_or_default();
                    assert!(
                        status.is_server_error(),
                        "gateway {at}: {status} {told} for {location}"
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
    async fn read(&mut self, web: &Web, mut stream: SseStream) {
        web.history.write(
            "opened",
            json!({"viewer": self.name, "run": self.run, "after": self.cursor()}),
        );
        self.connections.push(Vec::new());
        while let Ok(Some(frame)) = stream.next_frame().await {
            self.record(web, &frame);
            self.take(&frame);
        }
        web.history.write("broke", json!({"viewer": self.name}));
    }

    fn record(&self, web: &Web, frame: &SseFrame) {
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
                web.history.write("event", event);
            }
            (None, "end") => web.history.write("ended", viewer),
            (None, "gap") => web.history.write("gap", viewer),
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

    /// Nothing was missed, repeated or mixed, and the end came once with the whole answer before it.
    #[track_caller]
    pub(crate) fn is_whole(&self, story: &Story) {
        self.is_numbered();
        self.has_all_of(story);
    }

    /// As [`Seen::is_whole`], when the owner was cut off from every server and then lost: a later attempt may take back what nobody
    /// but the owner's own viewers had seen.
    #[track_caller]
    pub(crate) fn is_whole_but_for_what_was_taken_back(&self, story: &Story) {
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
        self.has_all_of(story);
    }

    #[track_caller]
    fn has_all_of(&self, story: &Story) {
        self.is_complete(story);
        assert!(
            self.pieces.values().any(|piece| *piece == story.text),
            "the pieces of {} make no whole: {:?}",
            self.run,
            self.pieces
        );
        for piece in self.pieces.values() {
            assert!(
                story.text.starts_with(piece.as_str()),
                "{}: mixed text {piece:?}",
                self.run
            );
        }
    }

    /// The end came once, with the whole answer before it.
    #[track_caller]
    pub(crate) fn is_complete(&self, story: &Story) {
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
            Some(&story.text),
            "{}/{}",
            self.thread,
            self.run
        );
    }

    /// Numbers rise by one from 1 on, over all connections.
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

    /// From this moment to the first event of a later attempt.
    pub(crate) fn taken_over_after(&self, moment: Instant) -> Option<Duration> {
        let later = self.attempts.iter().find(|(attempt, _)| **attempt > 1)?;
        Some(later.1.saturating_duration_since(moment))
    }
}
