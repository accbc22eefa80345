//! The contract suite of platforms.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::discord::{CHANNEL, DIRECT, DiscordOptions, PersonMessage};
use serde_json::json;

use super::fixture::{Fixture, adapter};
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

impl PlatformBench for Fixture {
    const PERSON: &'static str = "7";

    async fn start() -> Self {
        let options = DiscordOptions {
            rate_limits: false,
            ..DiscordOptions::default()
        };
        Self::with(options, &[]).await
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        adapter(&self.fake, &self.clock, &[])
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let token = "wrong-token".to_owned();
        let settings = [("bot_token", json!(token))];
        (adapter(&self.fake, &self.clock, &settings), token)
    }

    fn say(&self, kind: ChatKind, text: &str) {
        match kind {
            ChatKind::Direct => self.fake.controls().say(DIRECT, text),
            ChatKind::Group => self.fake.controls().say(CHANNEL, &format!("<@1> {text}")),
        };
    }

    fn say_as_program(&self, text: &str) -> bool {
        self.fake.controls().write(&PersonMessage {
            bot: true,
            author: 8,
            ..PersonMessage::new(CHANNEL, format!("<@1> {text}"))
        });
        true
    }

    fn redeliver(&self) -> bool {
        self.fake.controls().repeat_last();
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        // The stored cursor is the acknowledgement.
        None
    }

    fn disconnect(&self) {
        self.fake.controls().drop_connections();
    }

    fn is_disconnected(&self) -> bool {
        self.fake.controls().connections() == 0
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.fake.faults(), "create_message", |status| {
            (status, json!({"code": 0, "message": "internal error"}))
        })
    }

    fn shown(&self) -> Vec<String> {
        self.fake.controls().texts(DIRECT)
    }
}

crate::platform_suite!(Fixture);
