//! Heartbeats of silent streams, for viewers implemented by adapters.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Upper bound of the period, so that the addition of instants cannot overflow.
const MAX_PERIOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Timer that fires after silence. The timer is re-armed only when it fires, because a reset per
/// event is expensive.
#[derive(Debug)]
pub struct Heartbeat {
    period: Duration,
    quiet_since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    /// Creates a heartbeat that fires after each `period` of silence; a period of zero means never.
    pub fn every(period: Duration) -> Option<Self> {
        let (period, now) = (period.min(MAX_PERIOD), Instant::now());
        (!period.is_zero()).then(|| Self {
            period,
            quiet_since: now,
            timer: Box::pin(tokio::time::sleep_until(now + period)),
        })
    }

    /// Records activity at `now`, which postpones the next heartbeat.
    pub fn put_off(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// Returns `Ready` after each period without activity.
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
