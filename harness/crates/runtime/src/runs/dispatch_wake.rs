//! Wake-up signal of the dispatcher.

use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// Wakes the dispatcher when a queued run may be able to start.
#[derive(Debug, Default)]
pub(super) struct DispatchWake {
    pub(super) signal: Notify,
    pub(super) started: AtomicBool,
}

impl DispatchWake {
    /// Makes the dispatcher poll the store at once.
    pub(super) fn wake(&self) {
        self.signal.notify_one();
    }
}
