//! Sliding windows that enforce rate limits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// At most `max` calls within `period`.
#[derive(Debug)]
pub struct Window {
    max: usize,
    period: Duration,
    calls: VecDeque<Instant>,
}

impl Window {
    /// Creates an empty window.
    pub fn new(max: usize, period: Duration) -> Self {
        Self {
            max,
            period,
            calls: VecDeque::new(),
        }
    }

    /// Counts a call, or returns the delay after which the next one is allowed.
    pub fn call(&mut self, now: Instant) -> Result<(), Duration> {
        while self
            .calls
            .front()
            .is_some_and(|first| now.duration_since(*first) >= self.period)
        {
            self.calls.pop_front();
        }
        if self.calls.len() < self.max {
            self.calls.push_back(now);
            return Ok(());
        }
        let first = self.calls.front().copied().unwrap_or(now);
        Err(self.period.saturating_sub(now.duration_since(first)))
    }

    /// Returns the number of calls that are left, and the delay until a further one is allowed.
    pub fn state(&self, now: Instant) -> (usize, Duration) {
        let left = self.max.saturating_sub(self.calls.len());
        let first = self.calls.front().copied().unwrap_or(now);
        let reset = self.period.saturating_sub(now.duration_since(first));
        (left, reset)
    }
}
