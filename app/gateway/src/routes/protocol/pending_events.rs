//! Events that a socket sends when its client has made its subscriptions.

use std::collections::BTreeMap;
use std::future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::Message;

/// Time in which further subscriptions join a replay. Clients subscribe to several channels at
/// once, in frames of their own, and ignore the events of one subscription that precede the end of
/// the run that another one has got.
const JOIN_TIMEOUT: Duration = Duration::from_millis(20);

/// Events to send, in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    by_seq: BTreeMap<u64, Message>,
    /// Time at which they are sent. `None` unless further subscriptions may join.
    due: Option<Instant>,
}

impl PendingEvents {
    pub(super) fn add(&mut self, seq: u64, event: Message) {
        self.by_seq.insert(seq, event);
    }

    /// Waits for further subscriptions, unless it waits already.
    pub(super) fn wait_for_others(&mut self) {
        self.due
            .get_or_insert_with(|| Instant::now() + JOIN_TIMEOUT);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.due.is_some()
    }

    /// Returns a future that completes when no further subscription joins. It never completes
    /// unless the events are waiting.
    pub(super) fn due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.due;
        async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => future::pending().await,
            }
        }
    }

    /// Takes the events, with their positions. The wait is over.
    pub(super) fn take(&mut self) -> BTreeMap<u64, Message> {
        self.due = None;
        std::mem::take(&mut self.by_seq)
    }
}
