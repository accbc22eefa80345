//! Events to send on a socket, in the order of their positions.

use std::collections::BTreeMap;
use std::future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::Message;

/// Time after a subscription in which a further one delays the events.
const JOIN_TIMEOUT: Duration = Duration::from_millis(20);
/// Maximum delay of the events.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// Events to send, by position.
///
/// A client that subscribes to several channels at once sends a frame for each. When it has received
/// the end of a run, it ignores earlier events of its other subscriptions. So the events are delayed
/// until the subscriptions are complete.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    by_seq: BTreeMap<u64, Message>,
    delay: Option<Delay>,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    ends_at: Instant,
    limit: Instant,
}

impl PendingEvents {
    pub(super) fn add(&mut self, seq: u64, event: Message) {
        self.by_seq.insert(seq, event);
    }

    /// Delays the events by [`JOIN_TIMEOUT`] from now, and by [`MAX_DELAY`] at most in total.
    pub(super) fn delay(&mut self) {
        let now = Instant::now();
        let limit = self.delay.map_or(now + MAX_DELAY, |delay| delay.limit);
        let ends_at = limit.min(now + JOIN_TIMEOUT);
        self.delay = Some(Delay { ends_at, limit });
    }

    pub(super) fn is_delayed(&self) -> bool {
        self.delay.is_some()
    }

    /// Reports whether the events were delayed by [`MAX_DELAY`].
    pub(super) fn is_overdue(&self) -> bool {
        self.delay
            .is_some_and(|delay| Instant::now() >= delay.limit)
    }

    /// Returns a future that completes when the delay ends. It never completes if there is none.
    pub(super) fn due(&self) -> impl Future<Output = ()> + use<> {
        let ends_at = self.delay.map(|delay| delay.ends_at);
        async move {
            match ends_at {
                Some(ends_at) => sleep_until(ends_at).await,
                None => future::pending().await,
            }
        }
    }

    /// Takes the events, with their positions, and ends the delay.
    pub(super) fn take(&mut self) -> BTreeMap<u64, Message> {
        self.delay = None;
        std::mem::take(&mut self.by_seq)
    }
}
