//! Rate limits of the fake.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::refusal::Refusal;
use crate::common::Window;

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// Windows by the thing that they limit.
#[derive(Debug)]
pub(super) struct FeishuLimits {
    enabled: bool,
    windows: HashMap<String, Window>,
}

impl FeishuLimits {
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            windows: HashMap::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.windows.clear();
    }

    fn count(
        &mut self,
        key: String,
        max: usize,
        period: Duration,
        now: Instant,
    ) -> Result<(), Duration> {
        if !self.enabled {
            return Ok(());
        }
        self.windows
            .entry(key)
            .or_insert_with(|| Window::new(max, period))
            .call(now)
    }

    /// Counts a call of an API: 1,000 per minute and 50 per second.
    pub(super) fn api(&mut self, method: &str, now: Instant) -> Result<(), Refusal> {
        self.count(format!("second {method}"), 50, SECOND, now)
            .and_then(|()| self.count(format!("minute {method}"), 1000, MINUTE, now))
            .map_err(|delay| rate_limited(delay, 400))
    }

    /// Counts a message to a chat: 5 per second.
    pub(super) fn chat(&mut self, chat: &str, now: Instant) -> Result<(), Refusal> {
        self.count(format!("chat {chat}"), 5, SECOND, now)
            .map_err(|_| Refusal::new(230_020, "the chat has reached its frequency limit"))
    }

    /// Counts an edit of a message: 5 per second.
    pub(super) fn message(&mut self, id: &str, now: Instant) -> Result<(), Refusal> {
        self.count(format!("message {id}"), 5, SECOND, now)
            .map_err(|_| Refusal::new(230_020, "the message has reached its frequency limit"))
    }

    /// Counts an operation of a card: 10 per second.
    pub(super) fn card(&mut self, id: &str, now: Instant) -> Result<(), Refusal> {
        self.count(format!("card {id}"), 10, SECOND, now)
            .map_err(|delay| rate_limited(delay, 429))
    }
}

/// Returns the refusal of a call above the limit of its API.
pub(super) fn rate_limited(delay: Duration, status: u16) -> Refusal {
    Refusal {
        status,
        code: 99_991_400,
        text: "request trigger frequency limit".to_owned(),
        reset: Some(delay.as_secs_f64().ceil() as u64),
    }
}
