//! Adapter, fake platform and event sink for tests.

use std::time::Duration;

use deerflow_chat_platforms::dingtalk::{
    CLIENT_ID, CLIENT_SECRET, DingTalkFake, DingTalkOptions, GROUP, STAFF,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::api::Api;
use super::platform::DingTalkPlatform;
use super::settings::{Intervals, Options};
use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, OutgoingMessage, Platform, PlatformError, Settings, Target,
};
use crate::testkit::RecordingSink;

/// Timeout of everything that a test waits for.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Fake and adapter.
pub(super) struct Fixture {
    pub(super) fake: DingTalkFake,
    pub(super) platform: DingTalkPlatform,
    pub(super) sink: RecordingSink,
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with(DingTalkOptions::default(), &[]).await
    }

    pub(super) async fn with(options: DingTalkOptions, settings: &[(&str, &str)]) -> Self {
        let fake = DingTalkFake::start(options).await.unwrap();
        let platform = adapter(&fake, settings);
        Self {
            fake,
            platform,
            sink: RecordingSink::default(),
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

/// Builds an adapter with more settings.
pub(super) fn adapter(fake: &DingTalkFake, more: &[(&str, &str)]) -> DingTalkPlatform {
    let base = fake.base();
    let mut entries = vec![
        ("api_base", base.as_str()),
        ("client_id", CLIENT_ID),
        ("client_secret", CLIENT_SECRET),
    ];
    entries.extend(more);
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
    DingTalkPlatform::new(Api::new(http, options))
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
