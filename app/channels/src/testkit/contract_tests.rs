//! The contract suite over the platform in memory, and the script of faults of fakes.

use std::sync::Arc;
use std::time::Duration;

use deerflow_chat_platforms::common::{Fault, Faults};
use parking_lot::Mutex;
use serde_json::Value;

use super::MemoryPlatform;
use super::contract::{PlatformBench, SendFault};
use crate::platform::{ChatKind, Event, Platform, PlatformError};

impl SendFault {
    /// Scripts the fault for the next call of a method of a fake. `failed` returns the answer of a
    /// failed server for its status. Returns the delay of a rate limit.
    pub(crate) fn script(
        self,
        faults: &Faults,
        method: &str,
        failed: impl FnOnce(u16) -> (u16, Value),
    ) -> Duration {
        let (fault, delay) = match self {
            Self::RateLimited(delay) => {
                let limited = Fault::RateLimited {
                    retry_after: delay.as_secs_f64(),
                    silent: false,
                };
                (limited, delay)
            }
            Self::Failed => {
                let (status, body) = failed(502);
                let answer = Fault::Answer {
                    status,
                    body,
                    headers: [].into(),
                };
                (answer, Duration::ZERO)
            }
            Self::LostReply => (Fault::LoseReply, Duration::ZERO),
        };
        faults.script(method, [fault]);
        delay
    }
}

#[derive(Default)]
struct Bench {
    platform: MemoryPlatform,
    last: Mutex<Option<Event>>,
}

impl PlatformBench for Bench {
    const PERSON: &'static str = "ann";

    async fn start() -> Self {
        Self::default()
    }

    fn adapter(&self) -> Arc<dyn Platform> {
        Arc::new(self.platform.clone())
    }

    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String) {
        let token = "wrong-token".to_owned();
        (Arc::new(self.platform.with_wrong_token(&token)), token)
    }

    fn say(&self, kind: ChatKind, text: &str) {
        let chat = match kind {
            ChatKind::Direct => "c1",
            ChatKind::Group => "g1",
        };
        let event = self.platform.message(chat, Self::PERSON, text);
        *self.last.lock() = Some(event.clone());
        self.platform.deliver(event);
    }

    fn redeliver(&self) -> bool {
        self.platform.deliver(self.last.lock().clone().unwrap());
        true
    }

    fn acknowledged(&self) -> Option<usize> {
        Some(self.platform.acknowledged())
    }

    fn disconnect(&self) {
        self.platform.disconnect();
    }

    fn is_disconnected(&self) -> bool {
        // A connection is a call that ends with the listener.
        true
    }

    fn fail_next(&self, fault: SendFault) -> Duration {
        match fault {
            SendFault::RateLimited(retry_after) => {
                let account = false;
                self.platform.fail([PlatformError::RateLimited {
                    retry_after,
                    account,
                }]);
                return retry_after;
            }
            SendFault::Failed => {
                self.platform
                    .fail([PlatformError::Unavailable("down".to_owned())]);
            }
            SendFault::LostReply => self.platform.lose_answers(1),
        }
        Duration::ZERO
    }

    fn shown(&self) -> Vec<String> {
        let messages = self.platform.messages().into_iter();
        messages.map(|message| message.text).collect()
    }
}

crate::platform_suite!(Bench);
