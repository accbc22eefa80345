//! Fixtures of the tests: an adapter at a fake, and a sink.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use deerflow_chat_platforms::common::Call;
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use harness::clock::SystemClock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use super::adapter::SlackPlatform;
use super::api::Api;
use super::links::Timing;
use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, Event, EventSink, LiveReply, OutgoingMessage, Platform,
    PlatformError, SinkError, Target,
};

/// Maximum duration of a test.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts a fake without rate limits and with fast redeliveries.
pub(super) async fn fake(change: impl FnOnce(&mut SlackOptions)) -> SlackFake {
    let mut options = SlackOptions {
        rate_limits: false,
        ack_timeout: Duration::from_millis(400),
        redelivery: vec![Duration::ZERO; 20],
        ..SlackOptions::default()
    };
    change(&mut options);
    SlackFake::start(options).await.unwrap()
}

/// Returns an adapter with short intervals.
pub(super) fn adapter(fake: &SlackFake) -> SlackPlatform {
    let timing = Timing {
        ping: Duration::from_millis(50),
        dead: Duration::from_millis(1_500),
        ack: Duration::from_millis(350),
        drain: Duration::from_millis(200),
        ..Timing::default()
    };
    adapter_with(fake, timing, ("xoxb-1", "xapp-1"))
}

/// Returns an adapter.
pub(super) fn adapter_with(
    fake: &SlackFake,
    timing: Timing,
    (bot, app): (&str, &str),
) -> SlackPlatform {
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let base = Url::parse(&fake.api_base()).unwrap();
    let api = Api::new(http, base, bot.into(), app.into());
    SlackPlatform::new(api, Arc::new(SystemClock), false, timing)
}

/// Listens while `body` runs, then stops. Returns the results of both.
pub(super) async fn while_listening<T>(
    platform: &SlackPlatform,
    sink: &Sink,
    cursor: Option<String>,
    body: impl Future<Output = T>,
) -> (T, Result<(), PlatformError>) {
    let stop = CancellationToken::new();
    let listening = platform.listen(sink, cursor, stop.clone());
    let body = async {
        let value = body.await;
        stop.cancel();
        value
    };
    let both = async { tokio::join!(body, listening) };
    timeout(LIMIT, both).await.expect("the test takes too long")
}

/// Listens until an error.
pub(super) async fn listen_until_error(
    platform: &SlackPlatform,
    sink: &Sink,
    body: impl Future<Output = ()>,
) -> PlatformError {
    let listening = platform.listen(sink, None, CancellationToken::new());
    let both = async { tokio::join!(body, listening) };
    let ((), result) = timeout(LIMIT, both).await.expect("the test takes too long");
    result.unwrap_err()
}

/// Waits until this many calls of a method were answered with this error.
pub(super) async fn calls(fake: &SlackFake, method: &str, error: i64, count: usize) -> Vec<Call> {
    let found = |calls: &[Call]| {
        let matches = |call: &&Call| call.method == method && call.error == error;
        let found: Vec<Call> = calls.iter().filter(matches).cloned().collect();
        (found.len() >= count).then_some(found)
    };
    timeout(LIMIT, fake.calls().wait_for(found))
        .await
        .expect("a call is missing")
}

/// Decision of a sink about one batch.
type Decide = dyn Fn(&[Event]) -> Result<(), SinkError> + Send + Sync;

/// Sink in memory.
pub(super) struct Sink {
    events: Mutex<Vec<Event>>,
    cursors: Mutex<VecDeque<String>>,
    connected: AtomicUsize,
    changed: Notify,
    decide: Box<Decide>,
}

impl Sink {
    /// Returns a sink that stores everything.
    pub(super) fn new() -> Self {
        Self::deciding(|_| Ok(()))
    }

    /// Returns a sink that decides about each batch.
    pub(super) fn deciding(
        decide: impl Fn(&[Event]) -> Result<(), SinkError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            events: Mutex::default(),
            cursors: Mutex::default(),
            connected: AtomicUsize::new(0),
            changed: Notify::new(),
            decide: Box::new(decide),
        }
    }

    /// Returns the stored events without duplicates.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut distinct: Vec<Event> = Vec::new();
        for event in self.events.lock().iter() {
            let is_same = |other: &Event| other.id == event.id && other.chat.id == event.chat.id;
            if !distinct.iter().any(is_same) {
                distinct.push(event.clone());
            }
        }
        distinct
    }

    /// Returns the newest cursor.
    pub(super) fn cursor(&self) -> Value {
        let cursors = self.cursors.lock();
        cursors
            .back()
            .map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }

    /// Waits until the connection is reported.
    pub(super) async fn connected(&self) {
        self.wait(|sink| (sink.connected.load(Ordering::SeqCst) > 0).then_some(()))
            .await;
    }

    /// Waits until this many distinct events are stored.
    pub(super) async fn stored(&self, count: usize) -> Vec<Event> {
        self.wait(|sink| Some(sink.events()).filter(|events| events.len() >= count))
            .await
    }

    async fn wait<T>(&self, found: impl Fn(&Self) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(value) = found(self) {
                    return value;
                }
                changed.await;
            }
        };
        timeout(LIMIT, waiting).await.expect("nothing arrived")
    }
}

#[async_trait]
impl EventSink for Sink {
    fn connected(&self) {
        self.connected.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
        (self.decide)(&events)?;
        self.events.lock().extend(events);
        self.cursors.lock().extend(cursor);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// Returns the destination of an answer to a message in a channel.
pub(super) fn target(channel: &str, ts: &str) -> Target {
    let is_direct = channel.starts_with('D');
    Target {
        workspace: "T1".to_owned(),
        chat: Chat {
            id: channel.to_owned(),
            kind: if is_direct {
                ChatKind::Direct
            } else {
                ChatKind::Group
            },
            parent: None,
        },
        topic: (!is_direct).then(|| ts.to_owned()),
        reply_to: Some(ts.to_owned()),
        person: "U1".to_owned(),
        context: json!({"team": "T1", "thread": ts}),
    }
}

/// Returns a text without markup, or a text with it.
pub(super) fn part(markup: &str, plain: &str) -> Part {
    Part {
        markup: markup.to_owned(),
        plain: plain.to_owned(),
    }
}

/// Returns a message.
pub(super) fn message(target: Target, content: Content, live: Value) -> OutgoingMessage {
    OutgoingMessage {
        target,
        content,
        live,
        last: true,
    }
}

/// Returns the circumstances of an attempt.
pub(super) fn delivery(id: u128, attempt: u32) -> Delivery {
    Delivery {
        id: Uuid::from_u128(id),
        attempt,
        progress: Value::Null,
    }
}

/// Returns an answer in progress.
pub(super) fn reply(target: Target) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(0x10),
        target,
        stop: None,
        state: Value::Null,
        may_exist: false,
    }
}
