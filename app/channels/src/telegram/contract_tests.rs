//! The contract suite of platforms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::telegram::{Post, TelegramFake};
use parking_lot::Mutex;
use serde_json::json;

use super::test_bench::{fake, platform, platform_with};
use crate::platform::{ChatKind, Platform};
use crate::testkit::contract::{PlatformBench, SendFault};

const DIRECT: i64 = 42;
const GROUP: i64 = -1001;

struct Bench {
    fake: TelegramFake,
    written: AtomicUsize,
    last: Mutex<(i64, i64)>,
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "42";

    async fn start() -> Self {
        Self {
            fake: fake().await,
            written: AtomicUsize::new(0),
            last: Mutex::default(),
        }
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        platform(&self.fake)
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let token = "999:wrong".to_owned();
        let wrong = platform_with(&self.fake, json!({"bot_token": token}));
        (wrong, token)
    }

    fn say(&self, kind: ChatKind, text: &str) {
        let (chat, text) = match kind {
            ChatKind::Direct => (DIRECT, text.to_owned()),
            ChatKind::Group => (GROUP, format!("@deer_bot {text}")),
        };
        self.written.fetch_add(1, Ordering::SeqCst);
        *self.last.lock() = (chat, self.fake.say(chat, DIRECT, &text));
    }

    fn say_as_program(&self, text: &str) -> bool {
        let post = Post {
            text: format!("@deer_bot {text}"),
            by_other_bot: true,
            ..Post::default()
        };
        self.written.fetch_add(1, Ordering::SeqCst);
        self.fake.post(GROUP, 43, post);
        true
    }

    fn redeliver(&self) -> bool {
        let (chat, message) = *self.last.lock();
        self.written.fetch_add(1, Ordering::SeqCst);
        self.fake.repeat(chat, message);
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        Some(self.written.load(Ordering::SeqCst) - self.fake.unconfirmed())
    }

    fn disconnect(&self) {
        self.fake.faults().script("getUpdates", [Fault::Drop]);
    }

    fn is_disconnected(&self) -> bool {
        // A poll is a call that ends with the listener.
        true
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.fake.faults(), "sendMessage", |status| {
            (
                status,
                json!({"ok": false, "error_code": status, "description": "Bad Gateway"}),
            )
        })
    }

    fn has_idempotency_keys(&self) -> bool {
        false
    }

    fn shown(&self) -> Vec<String> {
        let answers = self.fake.answers(DIRECT).into_iter();
        answers.map(|answer| answer.text).collect()
    }
}

crate::platform_suite!(Bench);
