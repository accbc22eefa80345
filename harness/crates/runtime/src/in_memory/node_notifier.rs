//! Node notifier of one process: every subscriber receives every signal.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::ports::{NodeNotifier, WakeSignal};

/// Number of retained signals; a subscriber that falls further behind receives
/// [`WakeSignal::Missed`].
const CHANNEL_CAPACITY: usize = 256;

/// Wake signals within one process. Clones share one channel.
#[derive(Debug, Clone)]
pub struct InMemoryNodeNotifier(broadcast::Sender<WakeSignal>);

impl Default for InMemoryNodeNotifier {
    fn default() -> Self {
        Self(broadcast::Sender::new(CHANNEL_CAPACITY))
    }
}

impl NodeNotifier for InMemoryNodeNotifier {
    fn ring(&self, signal: WakeSignal) {
        // There may be no subscriber.
        let _receivers = self.0.send(signal);
    }

    fn listen(&self) -> BoxStream<'static, WakeSignal> {
        stream::unfold(self.0.subscribe(), |mut signals| async {
            match signals.recv().await {
                Ok(signal) => Some((signal, signals)),
                Err(RecvError::Lagged(_)) => Some((WakeSignal::Missed, signals)),
                Err(RecvError::Closed) => None,
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn notifiers() -> [Arc<dyn NodeNotifier>; 2] {
        let notifier = InMemoryNodeNotifier::default();
        [Arc::new(notifier.clone()), Arc::new(notifier)]
    }

    crate::node_notifier_suite!([#[tokio::test]] notifiers);

    #[tokio::test]
    async fn lagging_subscriber_receives_missed_signal() {
        let notifier = InMemoryNodeNotifier::default();
        let mut received = notifier.listen();
        (0..=CHANNEL_CAPACITY).for_each(|_| notifier.ring(WakeSignal::Waiting));
        assert_eq!(received.next().await, Some(WakeSignal::Missed));
    }
}
