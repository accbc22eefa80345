//! State and wake-up signal of the dispatcher.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wakes the dispatcher when a queued run may be able to start.
#[derive(Debug, Default)]
pub(crate) struct DispatchWake {
    pub(crate) signal: Notify,
    state: Mutex<DispatcherState>,
}

/// Whether this process claims queued runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum DispatcherState {
    /// The first queued run starts the dispatcher.
    #[default]
    Idle,
    /// The dispatcher runs until shutdown.
    Started,
    /// This process is a guest: other processes claim the queued runs.
    Disabled,
}

impl DispatchWake {
    /// Makes the dispatcher poll the store at once.
    pub(crate) fn wake(&self) {
        self.signal.notify_one();
    }

    /// Marks the dispatcher as started. Returns `true` if the caller must spawn it.
    pub(crate) fn mark_started(&self) -> bool {
        let mut state = self.state.lock();
        let is_idle = *state == DispatcherState::Idle;
        if is_idle {
            *state = DispatcherState::Started;
        }
        is_idle
    }

    /// Prevents the start of the dispatcher in this process.
    pub(crate) fn disable(&self) {
        *self.state.lock() = DispatcherState::Disabled;
    }

    /// Reports whether other processes claim the runs that are queued here.
    pub(crate) fn is_disabled(&self) -> bool {
        *self.state.lock() == DispatcherState::Disabled
    }
}
