//! Adapter and fake for tests.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use harness::clock::SystemClock;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::markup::Part;
use crate::platform::{
    Chat, ChatKind, Content, Delivery, LiveReply, OutgoingMessage, Platform, PlatformContext,
    PlatformError, PlatformFactory, Settings, Target,
};

use super::TelegramFactory;

/// Limits the time of a test's wait.
pub(super) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("the wait ends in time")
}

/// Starts a fake without rate limits.
pub(super) async fn fake() -> TelegramFake {
    fake_with(|_| {}).await
}

/// Starts a fake with changed options; rate limits are off unless the change enables them.
pub(super) async fn fake_with(change: impl FnOnce(&mut TelegramOptions)) -> TelegramFake {
    let mut options = TelegramOptions {
        rate_limits: false,
        ..TelegramOptions::default()
    };
    change(&mut options);
    TelegramFake::start(options).await.unwrap()
}

/// Builds the adapter for a fake.
pub(super) fn platform(fake: &TelegramFake) -> Arc<dyn Platform> {
    platform_with(fake, json!({}))
}

/// Builds the adapter with more settings.
pub(super) fn platform_with(fake: &TelegramFake, more: Value) -> Arc<dyn Platform> {
    let mut settings = json!({"bot_token": fake.token(), "api_base": fake.base()});
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    let Value::Object(settings) = settings else {
        unreachable!()
    };
    let context = PlatformContext {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        clock: Arc::new(SystemClock),
    };
    TelegramFactory
        .build(&Settings(settings), &context)
        .unwrap()
}

/// Destination in a chat; positive ids are direct chats.
pub(super) fn target(chat: i64) -> Target {
    Target {
        workspace: String::new(),
        chat: Chat {
            id: chat.to_string(),
            kind: if chat > 0 {
                ChatKind::Direct
            } else {
                ChatKind::Group
            },
            parent: None,
        },
        topic: None,
        reply_to: None,
        person: "42".to_owned(),
        context: Value::Null,
    }
}

/// Text in HTML with its plain form.
pub(super) fn part(markup: &str, plain: &str) -> Part {
    Part {
        markup: markup.to_owned(),
        plain: plain.to_owned(),
    }
}

/// Message with a content and no live message.
pub(super) fn outgoing(target: Target, content: Content) -> OutgoingMessage {
    OutgoingMessage {
        target,
        content,
        live: Value::Null,
        last: true,
    }
}

/// First attempt of a delivery.
pub(super) fn delivery() -> Delivery {
    Delivery {
        id: Uuid::from_u128(7),
        attempt: 1,
        progress: Value::Null,
    }
}

/// Sends a text; returns the ids.
pub(super) async fn send_text(
    platform: &dyn Platform,
    target: Target,
    markup: &str,
) -> Result<Vec<String>, PlatformError> {
    let message = outgoing(target, Content::Text(part(markup, "plain")));
    let sent = platform.send(&message, None, &mut delivery()).await?;
    Ok(sent.ids)
}

/// Answer in progress without a state.
pub(super) fn live(target: Target) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(77),
        target,
        stop: Some(crate::platform::Button {
            label: "Stop".to_owned(),
            data: "stop:77".to_owned(),
        }),
        state: Value::Null,
        may_exist: false,
    }
}
