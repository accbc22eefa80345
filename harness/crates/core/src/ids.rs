//! Typed identifiers, and the port that creates new ones.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

/// Error: a text is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {value:?} must match [A-Za-z0-9_-]{{1,64}}")]
pub struct InvalidId {
    /// Expected kind of id.
    pub kind: &'static str,
    /// Rejected value, cut to 80 characters.
    pub value: String,
}

/// Maximum length of an identifier, in bytes.
pub const MAX_ID_LEN: usize = 64;

fn is_plain_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_ID_LEN
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

macro_rules! plain_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        /// Clones share the text.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses an id that matches `[A-Za-z0-9_-]{1,64}`.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                if is_plain_id(&text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId { kind: $kind, value: text.chars().take(80).collect() })
                }
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id.hyphenated().encode_lower(&mut Uuid::encode_buffer())[..].into())
            }
        }
    };
}

plain_id!(
    /// Id of a thread. Used in file paths and keys, so only few characters are allowed.
    ThreadId,
    "thread id"
);
plain_id!(
    /// Id of a run.
    RunId,
    "run id"
);
plain_id!(
    /// Id of a checkpoint. New ids are version 6 UUIDs: as text they sort by time, and clients rely
    /// on this.
    CheckpointId,
    "checkpoint id"
);
plain_id!(
    /// Id of a node. A process gets a new id at each start and each time its lease has expired.
    NodeId,
    "node id"
);

/// Source of new identifiers.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use deerflow_core::ids::IdSource;
/// use uuid::Uuid;
///
/// /// Consecutive ids, for reproducible tests.
/// #[derive(Debug, Default)]
/// struct Consecutive(AtomicU64);
///
/// impl IdSource for Consecutive {
///     fn random(&self) -> Uuid {
///         self.ordered()
///     }
///
///     fn ordered(&self) -> Uuid {
///         Uuid::from_u64_pair(0, self.0.fetch_add(1, Ordering::Relaxed))
///     }
/// }
///
/// let ids = Consecutive::default();
/// assert!(ids.checkpoint_id().as_str() < ids.checkpoint_id().as_str());
/// ```
pub trait IdSource: Send + Sync + fmt::Debug {
    /// Returns a random (version 4) UUID, for messages and tasks.
    fn random(&self) -> Uuid;
    /// Returns a version 6 UUID that is greater, as text, than every earlier one of this source,
    /// for checkpoints.
    fn ordered(&self) -> Uuid;

    /// Returns the UUID of a new thread or run. Ids that begin with the time put the rows of
    /// one moment on the same pages of an index, which saves a third of the bytes that a run writes.
    fn row_id(&self) -> Uuid {
        self.random()
    }

    /// Returns a new thread id.
    fn thread_id(&self) -> ThreadId {
        self.row_id().into()
    }
    /// Returns a new run id.
    fn run_id(&self) -> RunId {
        self.row_id().into()
    }
    /// Returns a new node id.
    fn node_id(&self) -> NodeId {
        self.random().into()
    }
    /// Returns a new checkpoint id.
    fn checkpoint_id(&self) -> CheckpointId {
        self.ordered().into()
    }
    /// Registers a checkpoint id of another source, so that the next id of this source is greater
    /// even if the clocks of the two processes differ or a clock was set back.
    fn heed(&self, _observed: &CheckpointId) {}
    /// Returns a new message id.
    fn message_id(&self) -> String {
        self.random().to_string()
    }
}

/// Ids from the randomness and clock of the operating system.
#[derive(Debug)]
pub struct SystemIds {
    node: [u8; 6],
    last_tick: Mutex<u64>,
}

impl Default for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one home of random ids")]
    fn default() -> Self {
        let bytes = *Uuid::new_v4().as_bytes();
        Self {
            node: [
                bytes[0] | 1,
                bytes[1],
                bytes[2],
                bytes[3],
                bytes[4],
                bytes[5],
            ],
            last_tick: Mutex::new(0),
        }
    }
}

impl SystemIds {
    /// Returns the time in ticks of 100 ns; each value is greater than the previous one, so that
    /// ids created within one tick still sort.
    fn next_tick(&self) -> u64 {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one home of time-ordered ids"
        )]
        let now = chrono::Utc::now();
        let tick =
            u64::try_from(now.timestamp_nanos_opt().unwrap_or_default() / 100).unwrap_or_default();
        let mut last = self.last_tick.lock();
        *last = tick.max(*last + 1);
        *last
    }
}

impl IdSource for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one home of random ids")]
    fn random(&self) -> Uuid {
        Uuid::new_v4()
    }

    /// Returns a version 7 UUID.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one home of time-ordered ids"
    )]
    fn row_id(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn ordered(&self) -> Uuid {
        ordered_uuid(self.next_tick(), self.node)
    }

    fn heed(&self, observed: &CheckpointId) {
        if let Some(tick) = tick_of(observed) {
            let mut last = self.last_tick.lock();
            *last = tick.max(*last);
        }
    }
}

/// Returns the tick in an id created by [`ordered_uuid`], unless it is implausibly late.
fn tick_of(id: &CheckpointId) -> Option<u64> {
    let uuid = Uuid::parse_str(id.as_str())
        .ok()
        .filter(|uuid| uuid.get_version_num() == 6)?;
    let (ticks, _) = uuid.get_timestamp()?.to_gregorian();
    ticks
        .checked_sub(GREGORIAN_TICKS)
        .filter(|tick| *tick < LAST_TICK)
}

/// Deterministic ids: one seed always yields the same sequence. For simulation and golden tests.
#[derive(Debug)]
pub struct SeededIds {
    state: Mutex<u64>,
}

impl SeededIds {
    /// Creates a source that always yields the same sequence for `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(seed),
        }
    }

    fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(1);
        // splitmix64: a full-period mix, good enough to spread a counter over an id.
        let mut z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl IdSource for SeededIds {
    fn random(&self) -> Uuid {
        uuid::Builder::from_random_bytes(
            ((u128::from(self.next()) << 64) | u128::from(self.next())).to_be_bytes(),
        )
        .into_uuid()
    }

    fn ordered(&self) -> Uuid {
        let mut state = self.state.lock();
        *state = state.wrapping_add(1);
        ordered_uuid(*state, [1, 0, 0, 0, 0, 0])
    }
}

/// Ticks between the Gregorian epoch of UUID time and the Unix epoch (RFC 9562, 5.1).
const GREGORIAN_TICKS: u64 = 0x01b2_1dd2_1381_4000;
/// Upper bound of plausible ticks, in the year 2600. It is far below the maximum of the format, so
/// an id from a wrong clock can still be followed by greater ones.
const LAST_TICK: u64 = 200_000_000_000_000_000;

fn ordered_uuid(unix_ticks_100ns: u64, node: [u8; 6]) -> Uuid {
    let ticks = unix_ticks_100ns.wrapping_add(GREGORIAN_TICKS);
    uuid::Builder::from_sorted_gregorian_timestamp(ticks, 0, &node).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_sorts_after_observed_id_from_faster_clock() {
        let ids = SystemIds::default();
        let now = ids.next_tick();
        let ahead = CheckpointId::from(ordered_uuid(now + 36_000_000_000, [9; 6]));
        assert!(ids.checkpoint_id() < ahead);
        ids.heed(&ahead);
        let (next, after) = (ids.checkpoint_id(), ids.checkpoint_id());
        assert!(ahead < next && next < after);
        for malformed in [
            "x",
            "00000000-0000-4000-8000-000000000000",
            "ffffffff-ffff-6fff-bfff-ffffffffffff",
        ] {
            ids.heed(&CheckpointId::parse(malformed).unwrap());
        }
        assert!(after < ids.checkpoint_id());
    }

    #[test]
    fn ids_outside_the_alphabet_are_refused() {
        for bad in ["", "a b", "../x", "ü", &"x".repeat(65), "a/b", "a\0"] {
            assert!(ThreadId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(ThreadId::parse("x".repeat(64)).is_ok());
    }

    #[test]
    fn ordered_ids_sort_as_text_in_creation_order() {
        let system = SystemIds::default();
        let seeded = SeededIds::new(7);
        for ids in [&system as &dyn IdSource, &seeded] {
            let created: Vec<String> = (0..2_000).map(|_| ids.ordered().to_string()).collect();
            let mut sorted = created.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(created, sorted);
        }
    }
}
