//! The contract suite of platforms.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};
use harness::clock::ManualClock;
use serde_json::json;

use super::test_bench::adapter;
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

struct Bench(WeComFake);

fn build(fake: &WeComFake, secret: &str) -> Arc<dyn Platform> {
    adapter(
        fake,
        secret,
        &ManualClock::starting_at(DateTime::UNIX_EPOCH),
    )
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "zhangsan";

    async fn start() -> Self {
        let options = WeComOptions {
            rate_limits: false,
            ..WeComOptions::default()
        };
        Self(WeComFake::start(options).await.unwrap())
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        build(&self.0, "secret")
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let secret = "wrong-secret".to_owned();
        (build(&self.0, &secret), secret)
    }

    fn say(&self, kind: ChatKind, text: &str) {
        let said = match kind {
            ChatKind::Direct => self.0.say(Self::PERSON, None, text),
            ChatKind::Group => self
                .0
                .say(Self::PERSON, Some("wr1"), &format!("@Bot {text}")),
        };
        said.expect("a bot is connected");
    }

    fn redeliver(&self) -> bool {
        false
    }

    fn acknowledged(&self) -> Option<usize> {
        None
    }

    fn disconnect(&self) {
        self.0.drop_connection();
    }

    fn is_disconnected(&self) -> bool {
        !self.0.is_connected()
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.0.faults(), "aibot_respond_msg", |_| {
            (200, json!({"errcode": -1, "errmsg": "system busy"}))
        });
        // The platform names no delay.
        Duration::from_secs(20)
    }

    fn has_idempotency_keys(&self) -> bool {
        false
    }

    fn shown(&self) -> Vec<String> {
        let shown = self.0.shown().into_iter();
        shown.map(|shown| shown.content).collect()
    }
}

crate::platform_suite!(Bench);
