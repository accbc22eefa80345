//! Times of heartbeats, and detection of silent sockets.

use std::time::Duration;

use tokio::time::Instant;

/// Bounds of the interval that the platform may name.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
const MAX_INTERVAL: Duration = Duration::from_secs(600);

/// Action at the time of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// A heartbeat is sent.
    Send,
    /// The last one was not acknowledged: the connection is dead.
    Dead,
}

/// Heartbeats of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heartbeat {
    interval: Duration,
    next: Instant,
    is_acknowledged: bool,
}

impl Heartbeat {
    /// Begins; the first heartbeat follows after the part `jitter` (0 to 1) of the interval.
    pub(super) fn begin(interval_ms: u64, jitter: f64, now: Instant) -> Self {
        let interval = Duration::from_millis(interval_ms).clamp(MIN_INTERVAL, MAX_INTERVAL);
        Self {
            interval,
            next: now + interval.mul_f64(jitter.clamp(0.0, 1.0)),
            is_acknowledged: true,
        }
    }

    /// Returns the time of the next heartbeat.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Notes the acknowledgement, or that acknowledgements cannot be read now.
    pub(super) fn acknowledged(&mut self) {
        self.is_acknowledged = true;
    }

    /// Decides at the time of a heartbeat and sets the next one.
    pub(super) fn due(&mut self, now: Instant) -> Beat {
        if !self.is_acknowledged {
            return Beat::Dead;
        }
        self.is_acknowledged = false;
        self.next = now + self.interval;
        Beat::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn missing_acknowledgement_means_dead() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::begin(1000, 0.5, start);
        assert_eq!(heartbeat.next(), start + Duration::from_millis(500));
        assert_eq!(heartbeat.due(heartbeat.next()), Beat::Send);
        assert_eq!(heartbeat.next(), start + Duration::from_millis(1500));
        heartbeat.acknowledged();
        assert_eq!(heartbeat.due(heartbeat.next()), Beat::Send);
        assert_eq!(heartbeat.due(heartbeat.next()), Beat::Dead);
    }

    #[tokio::test(start_paused = true)]
    async fn absurd_intervals_are_bounded() {
        let start = Instant::now();
        let slow = Heartbeat::begin(u64::MAX, 1.0, start);
        assert_eq!(slow.next(), start + MAX_INTERVAL);
        let fast = Heartbeat::begin(0, 1.0, start);
        assert_eq!(fast.next(), start + MIN_INTERVAL);
    }
}
