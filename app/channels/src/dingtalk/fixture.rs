//! Adapter, fake platform and event sink for tests.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_chat_platforms::dingtalk::{
    CLIENT_ID, CLIENT_SECRET, DingTalkFake, DingTalkOptions, GROUP, STAFF,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::api::Api;
use super::platform::DingTalkPlatform;
use super::settings::{Intervals, Options};
use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, Event, EventBody, EventSink, OutgoingMessage, Platform,
    PlatformError, Settings, SinkError, Target,
};

/// Timeout of everything that a test waits for.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Sink in memory.
#[derive(Debug, Default)]
pub(super) struct MemorySink {
    events: Mutex<Vec<Event>>,
    refusals: Mutex<VecDeque<SinkError>>,
    connected: Mutex<u32>,
    changed: Notify,
}

impl MemorySink {
    pub(super) fn refuse(&self, errors: impl IntoIterator<Item = SinkError>) {
        self.refusals.lock().extend(errors);
    }

    pub(super) fn refusals_left(&self) -> usize {
        self.refusals.lock().len()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    pub(super) fn texts(&self) -> Vec<String> {
        let text = |event: &Event| match &event.body {
            EventBody::Message(message) => message.text.clone(),
            other => format!("{other:?}"),
        };
        self.events.lock().iter().map(text).collect()
    }

    /// Waits until a condition holds.
    pub(super) async fn wait(&self, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        timeout(LIMIT, waiting).await.unwrap();
    }

    pub(super) async fn wait_connected(&self, times: u32) {
        self.wait(|sink| *sink.connected.lock() >= times).await;
    }
}

#[async_trait]
impl EventSink for MemorySink {
    fn connected(&self) {
        *self.connected.lock() += 1;
        self.changed.notify_waiters();
    }

    async fn accept(&self, events: Vec<Event>, _cursor: Option<String>) -> Result<(), SinkError> {
        let refusal = self.refusals.lock().pop_front();
        let result = match refusal {
            Some(error) => Err(error),
            None => {
                let mut stored = self.events.lock();
                for event in events {
                    if !stored.iter().any(|known| known.id == event.id) {
                        stored.push(event);
                    }
                }
                Ok(())
            }
        };
        self.changed.notify_waiters();
        result
    }
}

/// Fake and adapter.
pub(super) struct Fixture {
    pub(super) fake: DingTalkFake,
    pub(super) platform: DingTalkPlatform,
    pub(super) sink: MemorySink,
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with(DingTalkOptions::default(), &[]).await
    }

    pub(super) async fn with(options: DingTalkOptions, settings: &[(&str, &str)]) -> Self {
        let fake = DingTalkFake::start(options).await.unwrap();
        let base = fake.base();
        let mut entries = vec![
            ("api_base", base.as_str()),
            ("client_id", CLIENT_ID),
            ("client_secret", CLIENT_SECRET),
        ];
        entries.extend(settings);
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)));
        let mut options = Options::read(&Settings(entries.collect())).unwrap();
        options.intervals = Intervals {
            ping: Duration::from_millis(100),
            silence: Duration::from_secs(2),
            store: Duration::from_millis(5),
        };
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            fake,
            platform: DingTalkPlatform::new(Api::new(http, options)),
            sink: MemorySink::default(),
        }
    }

    /// Listens while a scenario runs, then stops. After an error the listener connects again.
    pub(super) async fn listen_during<T>(
        &self,
        scenario: impl Future<Output = T>,
    ) -> (Vec<PlatformError>, T) {
        let stop = CancellationToken::new();
        let listening = async {
            let mut errors = Vec::new();
            while let Err(error) = self.platform.listen(&self.sink, None, stop.clone()).await {
                errors.push(error);
            }
            errors
        };
        let scenario = async {
            let result = scenario.await;
            stop.cancel();
            result
        };
        timeout(LIMIT * 2, async { tokio::join!(listening, scenario) })
            .await
            .unwrap()
    }

    /// Waits for the n-th call of a method.
    pub(super) async fn wait_call(&self, method: &str, count: usize) {
        let found = self.fake.calls().wait_for(|calls| {
            let of_method = calls.iter().filter(|call| call.method == method);
            (of_method.count() >= count).then_some(())
        });
        timeout(LIMIT, found).await.unwrap();
    }

    pub(super) fn calls(&self, method: &str) -> usize {
        self.fake.calls().of(method).len()
    }
}

/// Destination in the direct chat or in the group.
pub(super) fn target(kind: ChatKind) -> Target {
    Target {
        workspace: "corp".to_owned(),
        chat: Chat {
            id: match kind {
                ChatKind::Direct => STAFF.to_owned(),
                ChatKind::Group => GROUP.to_owned(),
            },
            kind,
            parent: None,
        },
        topic: None,
        reply_to: None,
        person: STAFF.to_owned(),
        context: json!({"robot": CLIENT_ID}),
    }
}

/// Text message.
pub(super) fn text(kind: ChatKind, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        target: target(kind),
        content: Content::Text(Part {
            markup: text.to_owned(),
            plain: text.to_owned(),
        }),
        live: Value::Null,
        last: true,
    }
}

/// First attempt of a delivery.
pub(super) fn delivery(id: u128) -> Delivery {
    Delivery {
        id: Uuid::from_u128(id),
        attempt: 1,
        progress: Value::Null,
    }
}
