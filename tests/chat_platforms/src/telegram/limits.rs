//! Rate limits of the Bot API: per chat, per group and overall.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::common::Window;

/// Messages that a chat takes at once before the limit of one per second applies.
const BURST: f64 = 3.0;

/// Limits of one chat.
#[derive(Debug)]
struct ChatLimit {
    tokens: f64,
    filled_at: Instant,
    group: Option<Window>,
    closed_until: Option<Instant>,
}

/// Limits of all chats.
#[derive(Debug)]
pub(super) struct Limits {
    enabled: bool,
    overall: Window,
    chats: HashMap<i64, ChatLimit>,
    /// Calls for a chat before the time that an earlier refusal had named.
    pub(super) early: usize,
}

impl Limits {
    /// Creates limits; if they are not enabled, only scripted refusals close a chat.
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            overall: Window::new(30, Duration::from_secs(1)),
            chats: HashMap::new(),
            early: 0,
        }
    }

    fn chat(&mut self, chat: i64, now: Instant) -> &mut ChatLimit {
        self.chats.entry(chat).or_insert_with(|| ChatLimit {
            tokens: BURST,
            filled_at: now,
            group: (chat < 0).then(|| Window::new(20, Duration::from_secs(60))),
            closed_until: None,
        })
    }

    /// Closes a chat for some seconds.
    pub(super) fn close(&mut self, chat: i64, seconds: u64, now: Instant) {
        self.chat(chat, now).closed_until = Some(now + Duration::from_secs(seconds));
    }

    /// Counts a message or an edit, or returns the seconds after which the next one is allowed.
    pub(super) fn message(&mut self, chat: i64, now: Instant) -> Result<(), u64> {
        let enabled = self.enabled;
        let limit = self.chat(chat, now);
        if let Some(until) = limit.closed_until {
            let left = until.saturating_duration_since(now);
            if !left.is_zero() {
                self.early += 1;
                return Err(seconds(left));
            }
            limit.closed_until = None;
        }
        if !enabled {
            return Ok(());
        }
        let gained = now.duration_since(limit.filled_at).as_secs_f64();
        limit.tokens = (limit.tokens + gained).min(BURST);
        limit.filled_at = now;
        let refused = if limit.tokens < 1.0 {
            Some(Duration::from_secs_f64(1.0 - limit.tokens))
        } else {
            limit.group.as_mut().and_then(|group| group.call(now).err())
        };
        if let Some(delay) = refused {
            let delay = seconds(delay);
            self.close(chat, delay, now);
            return Err(delay);
        }
        limit.tokens -= 1.0;
        self.any(now)
    }

    /// Counts a call that only the overall limit concerns.
    pub(super) fn any(&mut self, now: Instant) -> Result<(), u64> {
        if !self.enabled {
            return Ok(());
        }
        self.overall.call(now).map_err(seconds)
    }
}

/// Returns whole seconds, at least one.
fn seconds(delay: Duration) -> u64 {
    (delay.as_secs_f64().ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_takes_a_burst_then_one_message_per_second() {
        let mut limits = Limits::new(true);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limits.message(1, start), Ok(()));
        }
        assert_eq!(limits.message(1, start), Err(1));
        assert_eq!(limits.message(2, start), Ok(()));
        assert_eq!(limits.early, 0);
        assert_eq!(limits.message(1, start), Err(1));
        assert_eq!(limits.early, 1);
        assert_eq!(limits.message(1, start + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn group_takes_twenty_messages_per_minute() {
        let mut limits = Limits::new(true);
        let start = Instant::now();
        for index in 0..20 {
            assert_eq!(
                limits.message(-1, start + Duration::from_secs(index)),
                Ok(())
            );
        }
        assert_eq!(limits.message(-1, start + Duration::from_secs(20)), Err(40));
    }

    #[test]
    fn bot_makes_thirty_calls_per_second() {
        let mut limits = Limits::new(true);
        let start = Instant::now();
        for chat in 1..=30 {
            assert_eq!(limits.message(chat, start), Ok(()));
        }
        assert_eq!(limits.message(31, start), Err(1));
    }
}
