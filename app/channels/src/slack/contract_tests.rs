//! The contract suite of platforms.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::slack::SlackFake;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::fixtures::{adapter, adapter_with, fake};
use super::links::Timing;
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

struct Bench {
    fake: SlackFake,
    last: Mutex<Value>,
}

fn event(channel: &str, kind: &str, user: &str, ts: &str, text: &str) -> Value {
    json!({
        "type": "message", "channel": channel, "channel_type": kind, "user": user, "text": text,
        "ts": ts, "event_ts": ts, "team": "T1",
    })
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "U1";

    async fn start() -> Self {
        Self {
            fake: fake(|_| {}).await,
            last: Mutex::default(),
        }
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        Arc::new(adapter(&self.fake))
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let tokens = ("xoxb-1", "xapp-wrong");
        let wrong = adapter_with(&self.fake, Timing::default(), tokens);
        (Arc::new(wrong), tokens.1.to_owned())
    }

    fn say(&self, kind: ChatKind, text: &str) {
        let escaped = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        *self.last.lock() = match kind {
            ChatKind::Direct => {
                let ts = self.fake.say_dm("U1", &escaped);
                event("DU1", "im", "U1", &ts, &escaped)
            }
            ChatKind::Group => {
                let ts = self.fake.mention("C1", "U1", &escaped);
                event("C1", "channel", "U1", &ts, &format!("<@UBOT> {escaped}"))
            }
        };
    }

    fn say_as_program(&self, text: &str) -> bool {
        let text = format!("<@UBOT> {text}");
        let mut other = event("C1", "channel", "U9", "1700000000.000001", &text);
        other["bot_id"] = json!("B9");
        self.fake.send_event(other);
        self.fake.say("C1", "UBOT", &text);
        true
    }

    fn redeliver(&self) -> bool {
        self.fake.send_event(self.last.lock().clone());
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        let acks = self.fake.calls().of("ack");
        Some(acks.iter().filter(|ack| ack.error == 0).count())
    }

    fn disconnect(&self) {
        self.fake.drop_connections();
    }

    fn is_disconnected(&self) -> bool {
        self.fake.connections() == 0
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.fake.faults(), "chat.postMessage", |status| {
            (status, json!({"ok": false, "error": "internal_error"}))
        })
    }

    fn shown(&self) -> Vec<String> {
        let answers = self.fake.answers("DU1").into_iter();
        answers.map(|answer| answer.text).collect()
    }
}

crate::platform_suite!(Bench);
