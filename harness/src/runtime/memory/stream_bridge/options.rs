//! What the memory bridge keeps, for how long, and how patient it is.

use std::time::Duration;

/// Limits of a [`MemoryStreamBridge`](super::MemoryStreamBridge). Build it from [`MemoryOptions::default`] and change what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Events kept per run; beyond it the oldest go and their readers get a gap. The newest is always kept.
    pub max_events: usize,
    /// Bytes of events kept per run; beyond it the oldest go.
    pub max_bytes: usize,
    /// How long a run can be replayed after its end.
    pub retention_after_end: Duration,
    /// Bytes of all ended runs together; beyond it the runs that ended first are forgotten early.
    pub max_ended_bytes: usize,
    /// A viewer that leaves events waiting for so long without asking for one is cut.
    pub stalled_subscriber_timeout: Duration,
    /// An open stream without a publish for so long has lost its producer: it is forgotten and its viewers are aborted.
    /// Must exceed the longest silence of a healthy run. Does not count while the run waits for a person.
    pub idle_stream_ttl: Duration,
    /// How often memory of what is no longer kept is given back. What viewers see does not depend on it.
    pub sweep_interval: Duration,
}

const MIB: usize = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for MemoryOptions {
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

/// An option that would make the bridge useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stream_bridge.memory.{0} must be greater than zero")]
pub struct InvalidOption(pub &'static str);

impl MemoryOptions {
    /// Refuses limits of zero where zero would drop every event, viewer or stream at once.
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
