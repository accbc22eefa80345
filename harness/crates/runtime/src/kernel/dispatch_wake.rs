//! Wake-up signal of the dispatcher.

use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// Wakes the dispatcher when a queued run may be able to start.
#[derive(Debug, Default)]
pub(crate) struct DispatchWake {
    pub(crate) signal: Notify,
    pub(crate) started: AtomicBool,
}

impl DispatchWake {
    /// Makes the dispatcher poll the store at once.
    pub(crate) fn wake(&self) {
        self.signal.notify_one();
    }
}
