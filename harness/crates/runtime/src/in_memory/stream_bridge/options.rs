//! Limits and timeouts of the in-memory bridge.

use std::time::Duration;

/// Limits of a [`InMemoryStreamBridge`](super::InMemoryStreamBridge). Build it from
/// [`InMemoryOptions::default`] and override single fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InMemoryOptions {
    /// Maximum number of events per run; beyond it the oldest are evicted and their readers get a
    /// gap. The newest is always retained.
    pub max_events: usize,
    /// Maximum bytes of events per run; beyond it the oldest are evicted.
    pub max_bytes: usize,
    /// Time for which a run can be replayed after its end.
    pub retention_after_end: Duration,
    /// Maximum bytes of all ended runs together; beyond it the runs that ended first are evicted
    /// early.
    pub max_ended_bytes: usize,
    /// Time without a poll after which a viewer that has unread events is disconnected.
    pub stalled_subscriber_timeout: Duration,
    /// Time without a publish after which an open stream is removed and its viewers are aborted,
    /// because its producer is presumed dead. Must exceed the longest silence of a healthy run.
    /// Does not apply while the run waits for user input.
    pub idle_stream_ttl: Duration,
    /// Interval at which memory of expired runs is released. It does not affect what viewers see.
    pub sweep_interval: Duration,
}

const MIB: usize = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for InMemoryOptions {
    fn default() -> Self {
        Self {
            max_events: 100_000,
            max_bytes: 64 * MIB,
            retention_after_end: DAY,
            max_ended_bytes: 256 * MIB,
            stalled_subscriber_timeout: Duration::from_secs(30),
            idle_stream_ttl: DAY,
            sweep_interval: Duration::from_secs(10),
        }
    }
}

/// Invalid value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stream_bridge.memory.{0} must be greater than zero")]
pub struct InvalidOption(pub &'static str);

impl InMemoryOptions {
    /// Rejects limits of zero, which would drop every event, viewer or stream at once.
    pub fn validate(&self) -> Result<(), InvalidOption> {
        let zeros = [
            (self.max_events == 0, "max_events"),
            (self.max_bytes == 0, "max_bytes"),
            (
                self.stalled_subscriber_timeout.is_zero(),
                "stalled_subscriber_timeout",
            ),
            (self.idle_stream_ttl.is_zero(), "idle_stream_ttl"),
            (self.sweep_interval.is_zero(), "sweep_interval"),
        ];
        zeros
            .into_iter()
            .find(|(zero, _)| *zero)
            .map_or(Ok(()), |(_, name)| Err(InvalidOption(name)))
    }
}
