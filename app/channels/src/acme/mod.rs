//! The adapter that `docs/channels.md` prints, under the contract suite of platforms.

#[rustfmt::skip]
#[expect(unreachable_pub, reason = "the printed adapter is a module of a platform list")]
mod adapter;

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::acme::AcmeFake;
use deerflow_chat_platforms::common::Fault;
use harness::clock::SystemClock;
use serde_json::json;

use crate::platform::{ChatKind, Platform, PlatformContext, PlatformFactory, Settings};
use crate::testkit::contract::{PlatformBench, SendFault};
use adapter::AcmeFactory;

struct Bench(AcmeFake);

impl Bench {
    fn build(&self, bot: &str) -> Arc<dyn Platform> {
        let settings = [("api_base".to_owned(), json!(self.0.base(bot)))];
        let context = PlatformContext {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            clock: Arc::new(SystemClock),
        };
        AcmeFactory
            .build(&Settings(settings.into_iter().collect()), &context)
            .unwrap()
    }
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "ann";

    async fn start() -> Self {
        Self(AcmeFake::start().await.unwrap())
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        self.build("bot")
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        (self.build("stranger"), "acme has no secrets".to_owned())
    }

    fn has_groups(&self) -> bool {
        false
    }

    fn say(&self, _: ChatKind, text: &str) {
        self.0.say("c1", Self::PERSON, text);
    }

    fn redeliver(&self) -> bool {
        self.0.repeat_last();
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        // The stored cursor is the acknowledgement.
        None
    }

    fn disconnect(&self) {
        self.0.faults().script("events", [Fault::Drop]);
    }

    fn is_disconnected(&self) -> bool {
        self.0.polls() == 0
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        fault.script(self.0.faults(), "messages", |status| (status, json!({})));
        // The platform names no delay.
        Duration::from_secs(5)
    }

    fn shown(&self) -> Vec<String> {
        self.0.texts()
    }
}

crate::platform_suite!(Bench);

#[test]
fn documentation_prints_this_adapter() {
    let chapter = include_str!("../../../../docs/channels.md");
    let (_, printed) = chapter.split_once("```rust\n").unwrap();
    let (printed, _) = printed.split_once("```").unwrap();
    let (_, tested) = include_str!("adapter.rs").split_once("\n\n").unwrap();
    assert_eq!(printed, tested);
}
