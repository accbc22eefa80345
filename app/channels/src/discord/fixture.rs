//! Adapter, fake platform and event sink for tests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use deerflow_chat_platforms::discord::{
    CHANNEL, DIRECT, DiscordFake, DiscordOptions, GUILD, PERSON,
};
use harness::clock::ManualClock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::platform::DiscordPlatform;
use super::rest::Rest;
use super::settings::{Options, Pauses};
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
    cursor: Mutex<Option<String>>,
    refusals: Mutex<VecDeque<SinkError>>,
    connected: AtomicU32,
    changed: Notify,
}

impl MemorySink {
    pub(super) fn refuse(&self, errors: impl IntoIterator<Item = SinkError>) {
        self.refusals.lock().extend(errors);
    }

    pub(super) fn cursor(&self) -> Option<String> {
        self.cursor.lock().clone()
    }

    pub(super) fn connected_times(&self) -> u32 {
        self.connected.load(Ordering::SeqCst)
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
            EventBody::Press(press) => format!("press {}", press.data),
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

    pub(super) async fn wait_events(&self, count: usize) {
        self.wait(|sink| sink.events.lock().len() >= count).await;
    }

    pub(super) async fn wait_connected(&self, times: u32) {
        self.wait(|sink| sink.connected_times() >= times && sink.cursor().is_some())
            .await;
    }
}

#[async_trait]
impl EventSink for MemorySink {
    fn connected(&self) {
        self.connected.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
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
                *self.cursor.lock() = cursor;
                Ok(())
            }
        };
        self.changed.notify_waiters();
        result
    }
}

/// Fake and adapter.
pub(super) struct Fixture {
    pub(super) fake: DiscordFake,
    pub(super) platform: Arc<DiscordPlatform>,
    pub(super) clock: ManualClock,
    pub(super) sink: MemorySink,
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with(DiscordOptions::default(), &[]).await
    }

    pub(super) async fn with(options: DiscordOptions, settings: &[(&str, Value)]) -> Self {
        let fake = DiscordFake::start(options).await.unwrap();
        let clock = ManualClock::starting_at(DateTime::from_timestamp(1_753_856_410, 0).unwrap());
        let platform = adapter(&fake, &clock, settings);
        Self {
            fake,
            platform,
            clock,
            sink: MemorySink::default(),
        }
    }

    /// Replaces the adapter, as a restart of the process does.
    pub(super) fn restart(&mut self) {
        self.platform = adapter(&self.fake, &self.clock, &[]);
    }

    /// Listens behind the stored cursor while a scenario runs, then stops.
    pub(super) async fn listen_during<T>(
        &self,
        scenario: impl Future<Output = T>,
    ) -> (Result<(), PlatformError>, T) {
        let stop = CancellationToken::new();
        let listening = self
            .platform
            .listen(&self.sink, self.sink.cursor(), stop.clone());
        let scenario = async {
            let result = scenario.await;
            stop.cancel();
            result
        };
        timeout(LIMIT * 2, async { tokio::join!(listening, scenario) })
            .await
            .unwrap()
    }

    /// Listens until it ends by itself.
    pub(super) async fn listen_to_the_end(&self) -> Result<(), PlatformError> {
        let listening =
            self.platform
                .listen(&self.sink, self.sink.cursor(), CancellationToken::new());
        timeout(LIMIT, listening).await.unwrap()
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

fn adapter(
    fake: &DiscordFake,
    clock: &ManualClock,
    settings: &[(&str, Value)],
) -> Arc<DiscordPlatform> {
    let mut entries = vec![("api_base".to_owned(), json!(fake.api_base()))];
    entries.extend(
        settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone())),
    );
    let settings = Settings(entries.into_iter().collect());
    let mut options = Options::read(&settings).unwrap();
    options.pauses = Pauses {
        identify: (Duration::from_millis(1), Duration::from_millis(20)),
        store: Duration::from_millis(5),
    };
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let token = settings.text("bot_token").unwrap_or("TOKEN").to_owned();
    let rest = Rest::new(http, options.api_base.clone(), token.into());
    Arc::new(DiscordPlatform::new(rest, options, Arc::new(clock.clone())))
}

/// Destination in the guild's channel or in the direct chat.
pub(super) fn target(channel: u64) -> Target {
    Target {
        workspace: if channel == CHANNEL {
            GUILD.to_string()
        } else {
            String::new()
        },
        chat: Chat {
            id: channel.to_string(),
            kind: if channel == DIRECT {
                ChatKind::Direct
            } else {
                ChatKind::Group
            },
            parent: None,
        },
        topic: None,
        reply_to: None,
        person: PERSON.to_string(),
        context: Value::Null,
    }
}

/// Destination that answers an event.
pub(super) fn reply_target(event: &Event) -> Target {
    Target {
        workspace: event.workspace.clone(),
        chat: event.chat.clone(),
        topic: None,
        reply_to: Some(event.id.clone()),
        person: event.sender.id.clone(),
        context: event.context.clone(),
    }
}

/// Text message.
pub(super) fn text(target: Target, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        target,
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
