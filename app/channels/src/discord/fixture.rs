//! Adapter, fake platform and event sink for tests.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use deerflow_chat_platforms::discord::{
    CHANNEL, DIRECT, DiscordFake, DiscordOptions, GUILD, PERSON,
};
use harness::clock::ManualClock;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::platform::DiscordPlatform;
use super::rest::Rest;
use super::settings::{Options, Pauses};
use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, OutgoingMessage, Platform, PlatformError, Settings, Target,
};
use crate::testkit::RecordingSink;

/// Timeout of everything that a test waits for.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Fake and adapter.
pub(super) struct Fixture {
    pub(super) fake: DiscordFake,
    pub(super) platform: Arc<DiscordPlatform>,
    pub(super) clock: ManualClock,
    pub(super) sink: RecordingSink,
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
            sink: RecordingSink::default(),
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

    /// Waits for this many connections, and for the first cursor.
    pub(super) async fn wait_connected(&self, times: usize) {
        let connected =
            |sink: &RecordingSink| sink.connections() >= times && sink.cursor().is_some();
        self.sink.wait_until(connected).await;
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

/// Builds an adapter.
pub(super) fn adapter(
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
