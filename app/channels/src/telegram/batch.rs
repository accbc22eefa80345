//! Decoding of the answer to `getUpdates`. One malformed update costs only itself.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::platform::{Event, MAX_NESTING, nesting};

use super::event::{DecodeError, decode};
use super::me::Me;

/// Updates of one poll.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Batch {
    /// Events in order.
    pub(super) events: Vec<Event>,
    /// Number of received updates.
    pub(super) updates: usize,
    /// Offset that confirms all of them.
    pub(super) next_offset: Option<i64>,
    /// Updates that are no events, with their ids.
    pub(super) malformed: Vec<(Option<i64>, DecodeError)>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct UpdateId {
    update_id: i64,
}

/// Decodes a successful answer; `None` if it is another one.
pub(super) fn decode_batch(body: &[u8], me: &Me, now: DateTime<Utc>) -> Option<Batch> {
    let body = String::from_utf8_lossy(body);
    // Raw values are skipped without recursion, so that no depth fails the whole answer.
    let envelope = serde_json::from_str::<Envelope<'_>>(&body).ok()?;
    if !envelope.ok {
        return None;
    }
    let mut batch = Batch {
        updates: envelope.result.len(),
        ..Batch::default()
    };
    for raw in envelope.result {
        let id = serde_json::from_str::<UpdateId>(raw.get())
            .ok()
            .map(|update| update.update_id);
        if let Some(id) = id {
            let next = id.saturating_add(1);
            batch.next_offset = Some(batch.next_offset.map_or(next, |offset| offset.max(next)));
        }
        match decode_update(raw.get(), me, now) {
            Ok(Some(event)) => batch.events.push(event),
            Ok(None) => {}
            Err(error) => batch.malformed.push((id, error)),
        }
    }
    Some(batch)
}

fn decode_update(raw: &str, me: &Me, now: DateTime<Utc>) -> Result<Option<Event>, DecodeError> {
    if nesting(raw.as_bytes()) > MAX_NESTING {
        return Err(DecodeError::Depth);
    }
    let update = serde_json::from_str::<Value>(raw).map_err(|_| DecodeError::Json)?;
    decode(&update, me, now)
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
