//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use super::batch::decode_batch;
use super::me::Me;
use crate::platform::Event;

/// Decodes the answer to `getUpdates`.
pub(crate) fn decoded(bytes: &[u8], now: DateTime<Utc>) -> Vec<Event> {
    let me = Me {
        id: 1,
        username: "bot".to_owned(),
        reads_groups: true,
    };
    decode_batch(bytes, &me, now)
        .map(|batch| batch.events)
        .unwrap_or_default()
}
