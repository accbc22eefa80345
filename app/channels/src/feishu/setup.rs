//! Setup of tests: an adapter at a fake, and a sink.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuIncoming, FeishuOptions};
use harness::clock::{Clock, ManualClock, SystemClock};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::FeishuFactory;
use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, Event, EventSink, LiveReply, OutgoingMessage, Platform,
    PlatformContext, PlatformFactory, Settings, SinkError, Target,
};

/// Limits the time of a test's wait.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("the awaited thing did not happen")
}

/// Adapter with its fake and its clock.
pub(super) struct Setup {
    pub(super) fake: FeishuFake,
    pub(super) clock: ManualClock,
    pub(super) platform: Arc<dyn Platform>,
}

impl Setup {
    pub(super) async fn start() -> Self {
        Self::with(FeishuOptions {
            redelivery: vec![Duration::from_millis(20); 5],
            ..FeishuOptions::default()
        })
        .await
    }

    pub(super) async fn with(options: FeishuOptions) -> Self {
        let fake = FeishuFake::start(options).await.unwrap();
        let clock = ManualClock::starting_at(SystemClock.now());
        let secret = json!("secret");
        let platform = build(&fake, &clock, &secret);
        Self {
            fake,
            clock,
            platform,
        }
    }

    /// Returns a second adapter of the same bot, as another process would have it.
    pub(super) fn again(&self) -> Arc<dyn Platform> {
        build(&self.fake, &self.clock, &json!("secret"))
    }

    /// Writes a direct message without an event and returns the target of its answer.
    pub(super) fn target(&self) -> Target {
        let incoming = FeishuIncoming::direct("oc_1", "ou_1", "hello");
        let id = self.fake.write_unseen(incoming);
        target("oc_1", ChatKind::Direct, Some(&id))
    }

    /// Returns the texts that a person sees from the bot.
    pub(super) fn shown(&self) -> Vec<String> {
        let sent = self.fake.sent();
        sent.iter()
            .map(|message| self.fake.visible(&message.message_id))
            .collect()
    }
}

/// Builds an adapter.
pub(super) fn build(fake: &FeishuFake, clock: &ManualClock, secret: &Value) -> Arc<dyn Platform> {
    let Value::Object(settings) =
        json!({"app_id": "cli_a", "app_secret": secret, "domain": fake.base()})
    else {
        unreachable!()
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a test needs no timeouts or proxies"
    )]
    let http = reqwest::Client::new();
    let context = PlatformContext {
        http,
        clock: Arc::new(clock.clone()),
    };
    FeishuFactory.build(&Settings(settings), &context).unwrap()
}

pub(super) fn target(chat: &str, kind: ChatKind, reply_to: Option<&str>) -> Target {
    Target {
        workspace: "t1".to_owned(),
        chat: Chat {
            id: chat.to_owned(),
            kind,
            parent: None,
        },
        topic: None,
        reply_to: reply_to.map(ToOwned::to_owned),
        person: "ou_1".to_owned(),
        context: Value::Null,
    }
}

pub(super) fn part(text: &str) -> Part {
    Part {
        markup: text.to_owned(),
        plain: text.replace("**", ""),
    }
}

pub(super) fn text_message(target: &Target, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        target: target.clone(),
        content: Content::Text(part(text)),
        live: Value::Null,
        last: true,
    }
}

pub(super) fn delivery(number: u128) -> Delivery {
    Delivery {
        id: Uuid::from_u128(number),
        attempt: 1,
        progress: Value::Null,
    }
}

pub(super) fn live_reply(target: &Target) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(77),
        target: target.clone(),
        stop: None,
        state: Value::Null,
        may_exist: false,
    }
}

/// Sink that records events and follows a script of errors.
#[derive(Debug)]
pub(super) struct TestSink {
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) cursor: Mutex<Option<String>>,
    pub(super) errors: Mutex<VecDeque<SinkError>>,
    /// `true` while events are held before they are stored.
    pub(super) held: watch::Sender<bool>,
    changes: watch::Sender<u64>,
}

impl Default for TestSink {
    fn default() -> Self {
        Self {
            events: Mutex::default(),
            cursor: Mutex::default(),
            errors: Mutex::default(),
            held: watch::Sender::new(false),
            changes: watch::Sender::new(0),
        }
    }
}

impl TestSink {
    pub(super) fn failing(errors: impl IntoIterator<Item = SinkError>) -> Self {
        let sink = Self::default();
        sink.errors.lock().extend(errors);
        sink
    }

    /// Waits until `found` returns a value.
    pub(super) async fn wait<T>(&self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        soon(async {
            loop {
                if let Some(value) = found(self) {
                    return value;
                }
                changes.changed().await.unwrap();
            }
        })
        .await
    }

    /// Waits for a number of events.
    pub(super) async fn events(&self, count: usize) -> Vec<Event> {
        self.wait(|sink| {
            let events = sink.events.lock();
            (events.len() >= count).then(|| events.clone())
        })
        .await
    }

    /// Waits until events are offered while they are held.
    pub(super) async fn offered(&self) {
        self.wait(|sink| (*sink.changes.borrow() > 1).then_some(()))
            .await;
    }

    fn change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

#[async_trait]
impl EventSink for TestSink {
    fn connected(&self) {
        self.change();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
        self.change();
        self.held.subscribe().wait_for(|held| !*held).await.unwrap();
        if let Some(error) = self.errors.lock().pop_front() {
            return Err(error);
        }
        self.events.lock().extend(events);
        *self.cursor.lock() = cursor;
        self.change();
        Ok(())
    }
}
