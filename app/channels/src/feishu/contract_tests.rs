//! The contract suite of platforms.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::feishu::{FeishuIncoming, FeishuOptions};
use parking_lot::Mutex;
use serde_json::json;

use super::setup::{Setup, build};
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

struct Bench {
    setup: Setup,
    last: Mutex<Option<(String, FeishuIncoming)>>,
}

fn addressed(text: &str) -> FeishuIncoming {
    let text = format!("@_user_1 {text}");
    FeishuIncoming::group("oc_2", Bench::PERSON, &text).mentioning("@_user_1", "ou_bot", "Bot")
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "ou_1";

    async fn start() -> Self {
        Self {
            setup: Setup::with(FeishuOptions {
                redelivery: vec![Duration::from_millis(20); 1_000],
                rate_limits: false,
                ..FeishuOptions::default()
            })
            .await,
            last: Mutex::default(),
        }
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        self.setup.again()
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let secret = "wrong-secret".to_owned();
        (
            build(&self.setup.fake, &self.setup.clock, &json!(secret)),
            secret,
        )
    }

    fn say(&self, kind: ChatKind, text: &str) {
        let incoming = match kind {
            ChatKind::Direct => FeishuIncoming::direct("oc_1", Self::PERSON, text),
            ChatKind::Group => addressed(text),
        };
        let id = self.setup.fake.write(incoming.clone());
        *self.last.lock() = Some((id, incoming));
    }

    fn say_as_program(&self, text: &str) -> bool {
        self.setup.fake.write(FeishuIncoming {
            sender_type: "app".to_owned(),
            ..addressed(text)
        });
        true
    }

    fn redeliver(&self) -> bool {
        let last = self.last.lock();
        let (id, incoming) = last.as_ref().unwrap();
        self.setup.fake.repeat(id, incoming);
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        let acks = self.setup.fake.acks();
        Some(acks.iter().filter(|ack| ack.code == 200).count())
    }

    fn disconnect(&self) {
        self.setup.fake.cut_connections();
    }

    fn is_disconnected(&self) -> bool {
        self.setup.fake.connections() == 0
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        let faults = self.setup.fake.faults();
        fault.script(faults, "POST im/v1/messages/reply", |status| {
            (status, json!({"code": 1, "msg": "internal error"}))
        })
    }

    fn shown(&self) -> Vec<String> {
        self.setup.shown()
    }
}

crate::platform_suite!(Bench);
