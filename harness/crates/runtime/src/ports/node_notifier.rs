//! Wake-up signals between the processes that share a store.

use futures_util::stream::BoxStream;

use deerflow_core::ids::{RunId, ThreadId};

/// Wake-up signal for a committed change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeSignal {
    /// A cancel of this run was requested. Another process may own it.
    Cancelled(RunId),
    /// A run is queued that any process may claim.
    Waiting,
    /// The stream of a run of this thread is open, so its viewers in other processes can subscribe.
    Started(ThreadId),
    /// This run has ended, so the next run of its thread may start.
    Ended(RunId),
    /// Signals may have been lost; any change is possible.
    Missed,
}

/// Signals other processes to poll the store now. Signals are hints and may be lost: every process
/// also polls at intervals, and only the store is authoritative.
///
/// ```
/// use deerflow_runtime::in_memory::InMemoryNodeNotifier;
/// use deerflow_runtime::runs::{NodeNotifier, WakeSignal};
/// use futures_util::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let notifier = InMemoryNodeNotifier::default();
/// let mut signals = notifier.listen();
/// notifier.ring(WakeSignal::Waiting);
/// assert_eq!(signals.next().await, Some(WakeSignal::Waiting));
/// # }
/// ```
pub trait NodeNotifier: Send + Sync + std::fmt::Debug {
    /// Sends a signal for a committed change. Returns at once and never fails.
    fn ring(&self, signal: WakeSignal);

    /// Subscribes to signals of all processes, including this one. The stream ends only when the
    /// notifier is dropped. After an interruption it continues with [`WakeSignal::Missed`].
    fn listen(&self) -> BoxStream<'static, WakeSignal>;
}
