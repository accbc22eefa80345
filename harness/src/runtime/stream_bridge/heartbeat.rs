//! Shows that a silent stream lives: for viewers that adapters make.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Keeps the arithmetic of moments from overflowing.
const LONGEST_PERIOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Fires after silence. The timer is moved only when it rings, so an event costs no timer.
#[derive(Debug)]
pub struct Heartbeat {
    period: Duration,
    quiet_since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    /// Beats after each `period` of silence from now on; a period of zero means never.
    pub fn every(period: Duration) -> Option<Self> {
        let (period, now) = (period.min(LONGEST_PERIOD), Instant::now());
        (!period.is_zero()).then(|| Self {
            period,
            quiet_since: now,
            timer: Box::pin(tokio::time::sleep_until(now + period)),
        })
    }

    /// Something was shown at `now`.
    pub fn put_off(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// Ready when it is time to show that the stream lives.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now.saturating_duration_since(self.quiet_since) >= self.period {
                self.quiet_since = now;
                self.timer.as_mut().reset(now + self.period);
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.quiet_since + self.period);
        }
        Poll::Pending
    }
}
