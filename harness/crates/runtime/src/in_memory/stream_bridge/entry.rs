//! Entry of a log.

use tokio::time::Instant;

use crate::stream_bridge::StreamEvent;

/// An event and the time of its publish.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) event: StreamEvent,
    pub(super) at: Instant,
}

impl Entry {
    /// Returns the bytes that the entry uses, without what it shares with other events.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.event.event.len() + self.event.data.own_len()
    }
}
