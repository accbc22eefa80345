//! Limits and timeouts of the Redis bridge.

use std::fmt;
use std::time::Duration;

/// Limits of a [`RedisStreamBridge`](super::RedisStreamBridge). Start from [`RedisOptions::at`] and
/// change single fields.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://` or `rediss://`, with user and password if the server requires them.
    pub url: String,
    /// Prefix of every key and channel, so that several systems can share a server.
    pub key_prefix: String,
    /// If `true`, a server that may evict streams is an error at start; otherwise it is logged.
    pub refuse_eviction: bool,
    /// Maximum number of events stored per run. The oldest are dropped first, and their readers get
    /// a gap. The newest is always stored.
    pub max_events: usize,
    /// Maximum bytes of events stored per run. The oldest are dropped first.
    pub max_bytes: usize,
    /// Time for which a run can be replayed after its end.
    pub retention_after_end: Duration,
    /// Maximum bytes of events that this node holds in memory for the runs it publishes, to rebuild
    /// their streams if the server loses them.
    pub max_owned_bytes: usize,
    /// A viewer that does not read available events for this time is disconnected.
    pub stalled_subscriber_timeout: Duration,
    /// Time without a new event after which an open stream counts as abandoned by its publisher:
    /// its viewers are aborted. The time does not run while the run waits for user input.
    pub idle_stream_ttl: Duration,
    /// Interval at which every followed run is polled, in addition to signals. Bounds the delay of
    /// a lost signal.
    pub poll_interval: Duration,
    /// Time for the publisher to rebuild a lost stream. After it, viewers get a gap.
    pub loss_timeout: Duration,
    /// Maximum time that the first event of a publisher waits until the stream's position is known.
    pub claim_timeout: Duration,
    /// Time after which a server that does not answer counts as unavailable. While it does, unsent
    /// events go to the durable log.
    pub slow_after: Duration,
}

const MIB: usize = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl RedisOptions {
    /// Returns the default limits for the server at `url`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            key_prefix: String::new(),
            refuse_eviction: false,
            max_events: 100_000,
            max_bytes: 64 * MIB,
            retention_after_end: DAY,
            max_owned_bytes: 64 * MIB,
            stalled_subscriber_timeout: Duration::from_secs(30),
            idle_stream_ttl: DAY,
            poll_interval: Duration::from_secs(1),
            loss_timeout: Duration::from_secs(10),
            claim_timeout: Duration::from_millis(250),
            slow_after: Duration::from_secs(1),
        }
    }
}

/// Allowance beyond the limits of a run for events that wait for the durable log.
const MAX_PENDING_EVENTS: usize = 16 * 1024;
const MAX_PENDING_BYTES: usize = 16 * MIB;

/// Size limit of one run's events.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLimit {
    events: usize,
    bytes: usize,
}

impl LogLimit {
    /// Returns `true` if this size exceeds the limit.
    pub(super) fn is_exceeded_by(self, events: usize, bytes: usize) -> bool {
        events > self.events || bytes > self.bytes
    }

    /// Returns the maximum number of events and of bytes.
    pub(super) fn limits(self) -> (usize, usize) {
        (self.events, self.bytes)
    }
}

impl RedisOptions {
    /// Returns the limit of the events stored per run.
    pub(super) fn retention_limit(&self) -> LogLimit {
        LogLimit {
            events: self.max_events,
            bytes: self.max_bytes,
        }
    }

    /// Returns the limit including events that wait for the durable log.
    pub(super) fn pending_limit(&self, durable: bool) -> LogLimit {
        let (events, bytes) = if durable {
            (MAX_PENDING_EVENTS, MAX_PENDING_BYTES)
        } else {
            (0, 0)
        };
        LogLimit {
            events: self.max_events.saturating_add(events),
            bytes: self.max_bytes.saturating_add(bytes),
        }
    }
}

impl fmt::Debug for RedisOptions {
    /// Omits the address, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("key_prefix", &self.key_prefix)
            .field("max_events", &self.max_events)
            .field("max_bytes", &self.max_bytes)
            .field("retention_after_end", &self.retention_after_end)
            .finish_non_exhaustive()
    }
}
