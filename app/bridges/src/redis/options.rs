//! What the Redis bridge keeps, for how long, and how patient it is.

use std::fmt;
use std::time::Duration;

/// Limits of a [`RedisStreamBridge`](super::RedisStreamBridge). Build it from [`RedisOptions::at`] and change what differs.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://` or `rediss://`, with user and password where the server asks for them.
    pub url: String,
    /// Goes before every key and channel, for several systems on one server.
    pub key_prefix: String,
    /// Whether a server that may evict streams is refused, rather than warned of.
    pub refuse_eviction: bool,
    /// Events kept per run; beyond it the oldest go and their readers get a gap. The newest is always kept.
    pub max_events: usize,
    /// Bytes of events kept per run; beyond it the oldest go.
    pub max_bytes: usize,
    /// How long a run can be replayed after its end.
    pub retention_after_end: Duration,
    /// Bytes of events that this node holds of the runs it owns, to make their streams anew when the server lost them.
    pub max_owned_bytes: usize,
    /// A viewer that leaves events waiting for so long without asking for one is cut.
    pub stalled_subscriber_timeout: Duration,
    /// An open stream without a publish for so long has lost its producer: its viewers are aborted. Does not count while the run
    /// waits for a person.
    pub idle_stream_ttl: Duration,
    /// How often every followed run is looked at, bell or no bell. Bounds what a lost bell costs.
    pub poll_interval: Duration,
    /// For so long the server is asked again before viewers are told that a stream it lost will not come back.
    pub loss_patience: Duration,
    /// The first event of a producer waits no longer than this to learn where its stream stands.
    pub claim_patience: Duration,
    /// A server that takes longer to answer may be out of order; what waits goes to the durable log meanwhile.
    pub slow_after: Duration,
}

const MIB: usize = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl RedisOptions {
    /// The usual limits, for the server at `url`.
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
            loss_patience: Duration::from_secs(10),
            claim_patience: Duration::from_millis(250),
            slow_after: Duration::from_secs(1),
        }
    }
}

/// Beyond the limits of a run so much may wait for the durable log, if there is one.
const WAITING_EVENTS: usize = 16 * 1024;
const WAITING_BYTES: usize = 16 * MIB;

/// What is kept of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    events: usize,
    bytes: usize,
}

impl Room {
    /// Whether so much is too much.
    pub(super) fn is_exceeded_by(self, events: usize, bytes: usize) -> bool {
        events > self.events || bytes > self.bytes
    }

    /// Its limits.
    pub(super) fn limits(self) -> (usize, usize) {
        (self.events, self.bytes)
    }
}

impl RedisOptions {
    /// What is kept of a run.
    pub(super) fn room(&self) -> Room {
        Room {
            events: self.max_events,
            bytes: self.max_bytes,
        }
    }

    /// The same, with what waits for the durable log.
    pub(super) fn waiting_room(&self, durable: bool) -> Room {
        let (events, bytes) = if durable {
            (WAITING_EVENTS, WAITING_BYTES)
        } else {
            (0, 0)
        };
        Room {
            events: self.max_events.saturating_add(events),
            bytes: self.max_bytes.saturating_add(bytes),
        }
    }
}

impl fmt::Debug for RedisOptions {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("key_prefix", &self.key_prefix)
            .field("max_events", &self.max_events)
            .field("max_bytes", &self.max_bytes)
            .field("retention_after_end", &self.retention_after_end)
            .finish_non_exhaustive()
    }
}
