//! The contract suite of platforms.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::dingtalk::{DingTalkOptions, PersonMessage, STAFF, TEMPLATE};
use serde_json::json;

use super::fixture::{Fixture, adapter};
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

impl PlatformBench for Fixture {
    const PERSON: &'static str = STAFF;

    async fn start() -> Self {
        let options = DingTalkOptions {
            redelivery: Duration::from_millis(100),
            rate_limits: false,
            ..DingTalkOptions::default()
        };
        Self::with(options, &[]).await
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        Arc::new(adapter(&self.fake, &[("card_template_id", TEMPLATE)]))
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let secret = "wrong-secret".to_owned();
        let settings = [("client_secret", secret.as_str())];
        (Arc::new(adapter(&self.fake, &settings)), secret)
    }

    fn say(&self, kind: ChatKind, text: &str) {
        self.fake.controls().write(&match kind {
            ChatKind::Direct => PersonMessage::direct(text),
            ChatKind::Group => PersonMessage::group(text),
        });
    }

    fn redeliver(&self) -> bool {
        self.fake.controls().repeat_last();
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        Some(self.fake.controls().acknowledged().len())
    }

    fn disconnect(&self) {
        self.fake.controls().drop_connections();
    }

    fn is_disconnected(&self) -> bool {
        self.fake.controls().connections() == 0
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.fake.faults(), "send_direct", |status| {
            (
                status,
                json!({"code": "ServiceUnavailable", "message": "busy"}),
            )
        })
    }

    fn has_idempotency_keys(&self) -> bool {
        false
    }

    fn shown(&self) -> Vec<String> {
        let controls = self.fake.controls();
        let cards = controls.cards().into_iter().map(|(_, text, _)| text);
        controls.texts(STAFF).into_iter().chain(cards).collect()
    }
}

crate::platform_suite!(Fixture);
