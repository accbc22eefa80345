//! Calls per minute and method, below the tiers of Slack.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::calls::Calls;

/// Period of the tiers.
const PERIOD: Duration = Duration::from_secs(60);
/// Age at which Slack has ended a stream by itself.
const STREAM_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum number of streams that are open, so that all can be stopped within a minute.
const MAX_STREAMS: usize = 16;

/// Importance of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// A live update; it is dropped when the budget is small.
    Live,
    /// A final text, which may use all of the budget.
    Final,
}

/// Returns the calls per minute, for live updates and for all calls. Methods without an entry have
/// no limit per method.
fn limits(method: &str) -> Option<(usize, usize)> {
    Some(match method {
        "chat.startStream" => (14, 14),
        "chat.stopStream" => (6, 18),
        "chat.update" => (32, 45),
        "chat.appendStream" => (90, 90),
        "reactions.add" => (45, 45),
        "conversations.history" | "conversations.replies" | "conversations.info" => (40, 45),
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Lane {
    calls: Calls,
    closed_until: Option<Instant>,
}

/// Budgets of all methods.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    lanes: HashMap<String, Lane>,
    streams: HashMap<String, Instant>,
}

impl Budgets {
    /// Counts a call until its end, or returns the delay after which it is allowed.
    fn take(&mut self, method: &str, urgency: Urgency, now: Instant) -> Result<(), Duration> {
        let Some((live, all)) = limits(method) else {
            return Ok(());
        };
        let lane = self.lanes.entry(method.to_owned()).or_default();
        lane.calls.expire(now, PERIOD);
        let max = if urgency == Urgency::Live { live } else { all };
        let permitted = lane.calls.permitted(max, now, PERIOD);
        let permitted = permitted.max(lane.closed_until.unwrap_or(now));
        if permitted > now {
            return Err(permitted - now);
        }
        lane.calls.begin();
        Ok(())
    }

    fn end(&mut self, method: &str, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(method) {
            lane.calls.end(now);
        }
    }

    /// Closes a method for the delay that Slack named.
    pub(super) fn close(&mut self, method: &str, delay: Duration, now: Instant) {
        if limits(method).is_some() {
            self.lanes
                .entry(method.to_owned())
                .or_default()
                .closed_until = Some(now + delay);
        }
    }

    /// Returns `true` if one more stream may be opened.
    pub(super) fn may_stream(&mut self, now: Instant) -> bool {
        self.streams
            .retain(|_, started| now.duration_since(*started) < STREAM_LIFETIME);
        self.streams.len() < MAX_STREAMS
    }

    /// Counts an open stream.
    pub(super) fn stream_opened(&mut self, ts: &str, now: Instant) {
        self.streams.insert(ts.to_owned(), now);
    }

    /// Removes a stream from the count.
    pub(super) fn stream_ended(&mut self, ts: &str) {
        self.streams.remove(ts);
    }
}

/// Counted call. It ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct CountedCall<'a> {
    budgets: &'a Mutex<Budgets>,
    method: &'a str,
}

impl<'a> CountedCall<'a> {
    /// Counts a call, or returns the delay after which it is allowed.
    pub(super) fn begin(
        budgets: &'a Mutex<Budgets>,
        method: &'a str,
        urgency: Urgency,
    ) -> Result<Self, Duration> {
        budgets.lock().take(method, urgency, Instant::now())?;
        Ok(Self { budgets, method })
    }
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        self.budgets.lock().end(self.method, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_updates_leave_a_reserve_for_final_texts() {
        let mut budgets = Budgets::default();
        let now = Instant::now();
        for _ in 0..32 {
            assert!(budgets.take("chat.update", Urgency::Live, now).is_ok());
            budgets.end("chat.update", now);
        }
        assert_eq!(budgets.take("chat.update", Urgency::Live, now), Err(PERIOD));
        for _ in 0..13 {
            assert!(budgets.take("chat.update", Urgency::Final, now).is_ok());
            budgets.end("chat.update", now);
        }
        let later = now + Duration::from_secs(20);
        let delay = budgets.take("chat.update", Urgency::Final, later);
        assert_eq!(delay, Err(Duration::from_secs(40)));
        assert!(
            budgets
                .take("chat.update", Urgency::Final, now + PERIOD)
                .is_ok()
        );
    }

    #[test]
    fn call_that_is_delayed_on_its_way_counts_from_its_end() {
        let (mut budgets, method) = (Budgets::default(), "chat.startStream");
        let now = Instant::now();
        for _ in 0..14 {
            assert!(budgets.take(method, Urgency::Live, now).is_ok());
        }
        let ended = now + Duration::from_secs(5);
        assert!(budgets.take(method, Urgency::Live, ended).is_err());
        for _ in 0..14 {
            budgets.end(method, ended);
        }
        let delay = budgets.take(method, Urgency::Live, now + PERIOD);
        assert_eq!(delay, Err(Duration::from_secs(5)));
        assert!(budgets.take(method, Urgency::Live, ended + PERIOD).is_ok());
    }

    #[test]
    fn closed_method_waits_exactly_as_long_as_named() {
        let mut budgets = Budgets::default();
        let now = Instant::now();
        budgets.close("chat.update", Duration::from_secs(33), now);
        let early = now + Duration::from_secs(32);
        let delay = budgets.take("chat.update", Urgency::Final, early);
        assert_eq!(delay, Err(Duration::from_secs(1)));
        let at = now + Duration::from_secs(33);
        assert!(budgets.take("chat.update", Urgency::Final, at).is_ok());
    }

    #[test]
    fn expired_streams_make_room() {
        let mut budgets = Budgets::default();
        let now = Instant::now();
        for stream in 0..MAX_STREAMS {
            budgets.stream_opened(&stream.to_string(), now);
        }
        assert!(!budgets.may_stream(now));
        assert!(budgets.may_stream(now + STREAM_LIFETIME));
    }
}
