//! Adapter and fake for tests.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};
use harness::clock::ManualClock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::WeComFactory;
use crate::markup::Part;
use crate::platform::*;
use crate::testkit::RecordingSink;

/// Time after which a test fails.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Adapter and fake.
pub(super) struct Bench {
    pub(super) fake: WeComFake,
    pub(super) platform: Arc<dyn Platform>,
    pub(super) inbox: RecordingSink,
    clock: ManualClock,
}

/// Builds an adapter.
pub(super) fn adapter(fake: &WeComFake, secret: &str, clock: &ManualClock) -> Arc<dyn Platform> {
    let settings = json!({"bot_id": "bot", "bot_secret": secret, "ws_url": fake.ws_url()});
    let Value::Object(settings) = settings else {
        panic!("settings");
    };
    let context = PlatformContext {
        http: reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap(),
        clock: Arc::new(clock.clone()),
    };
    WeComFactory.build(&Settings(settings), &context).unwrap()
}

impl Bench {
    pub(super) async fn new(options: WeComOptions) -> Self {
        let fake = WeComFake::start(options).await.unwrap();
        let clock = ManualClock::starting_at(DateTime::UNIX_EPOCH);
        Self {
            platform: adapter(&fake, "secret", &clock),
            fake,
            inbox: RecordingSink::default(),
            clock,
        }
    }

    /// Runs `work` while the adapter is connected, and stops the adapter then.
    pub(super) async fn connected<T>(&self, work: impl Future<Output = T>) -> T {
        let (listened, result) = self.listening(work).await;
        assert_eq!(listened, Ok(()));
        result
    }

    /// Runs `work` while the adapter listens. Returns the result of the listener too.
    pub(super) async fn listening<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> (Result<(), PlatformError>, T) {
        let stop = CancellationToken::new();
        let before = self.inbox.connections();
        let working = async {
            self.inbox.wait_connected(before + 1).await;
            let result = work.await;
            stop.cancel();
            result
        };
        let listening = self.platform.listen(&self.inbox, None, stop.clone());
        let both = async { tokio::join!(listening, working) };
        tokio::time::timeout(LIMIT, both).await.unwrap()
    }

    /// Waits for the event with this number, from 0.
    pub(super) async fn event(&self, number: usize) -> Event {
        self.inbox.wait_events(number + 1).await.remove(number)
    }

    /// Lets a person write. Returns the target of an answer.
    pub(super) async fn asked(&self) -> Target {
        let number = self.inbox.events().len();
        self.fake.say("zhangsan", None, "hello").unwrap();
        Target::of(&self.event(number).await)
    }

    /// Advances the time of the adapter and of the fake.
    pub(super) fn advance(&self, seconds: u64) {
        self.clock.advance(TimeDelta::seconds(seconds as i64));
        self.fake.advance(Duration::from_secs(seconds));
    }

    /// Sends a final text.
    pub(super) async fn send(&self, message: &OutgoingMessage) -> Result<Sent, PlatformError> {
        self.platform.send(message, None, &mut delivery()).await
    }

    /// Returns the visible messages as `kind: content`, with an ellipsis behind open streams.
    pub(super) fn shown(&self) -> Vec<String> {
        let shown = self.fake.shown().into_iter();
        shown
            .map(|shown| {
                let end = if shown.finished { "" } else { "…" };
                format!("{:?}: {}{end}", shown.kind, shown.content)
            })
            .collect()
    }
}

pub(super) fn text(target: &Target, text: &str, live: &Value) -> OutgoingMessage {
    OutgoingMessage {
        target: target.clone(),
        content: Content::Text(Part {
            markup: text.to_owned(),
            plain: text.to_owned(),
        }),
        live: live.clone(),
        last: true,
    }
}

pub(super) fn delivery() -> Delivery {
    Delivery {
        id: Uuid::from_u128(rand::random()),
        attempt: 1,
        progress: Value::Null,
    }
}

pub(super) fn live(target: &Target) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(rand::random()),
        target: target.clone(),
        stop: None,
        state: Value::Null,
        may_exist: false,
    }
}
