//! States of threads that this process wrote last, so that the next run of such a thread need not
//! read it.

use std::sync::Arc;
use std::time::Duration;

use hashlink::LruCache;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::state_size::StateSize;
use crate::checkpoint::ThreadHead;
use deerflow_core::ids::ThreadId;
use deerflow_core::state::ThreadState;

/// Maximum total size, in estimated bytes, while a state is retained that has been unused for
/// [`UNUSED_AFTER`].
const MAX_UNUSED_BYTES: usize = 64 << 20;
/// Time without a run or an update after which a state is retained only within
/// [`MAX_UNUSED_BYTES`].
const UNUSED_AFTER: Duration = Duration::from_secs(300);
/// Interval at which unused states are evicted.
const EVICTION_INTERVAL: Duration = Duration::from_secs(60);

/// State at the head of a thread. No task is pending in it.
#[derive(Debug, Clone)]
pub(crate) struct StateAtHead {
    pub(crate) head: ThreadHead,
    pub(crate) state: Arc<ThreadState>,
    pub(crate) size: StateSize,
    /// Step of the newest checkpoint.
    pub(crate) step: i64,
}

/// States of threads, evicted from the least recently used one on. A state is used only if the
/// store reports the same head, so one that another process or a deletion outdated is ignored.
#[derive(Debug)]
pub(crate) struct ThreadHeads {
    retained: Mutex<Retained>,
    max_bytes: usize,
}

#[derive(Debug)]
struct Retained {
    states: LruCache<ThreadId, RetainedState>,
    bytes: usize,
}

#[derive(Debug)]
struct RetainedState {
    state: StateAtHead,
    stored_at: Instant,
}

impl Retained {
    fn remove(&mut self, thread: &ThreadId) -> Option<StateAtHead> {
        let RetainedState { state, .. } = self.states.remove(thread)?;
        self.bytes -= state.size.bytes();
        Some(state)
    }

    /// Removes the least recently used state.
    fn evict(&mut self) -> Option<StateAtHead> {
        let (_, RetainedState { state, .. }) = self.states.remove_lru()?;
        self.bytes -= state.size.bytes();
        Some(state)
    }
}

impl ThreadHeads {
    /// Creates an empty cache of states of at most `max_bytes` estimated bytes together.
    pub(crate) fn bounded(max_bytes: usize) -> Self {
        Self {
            retained: Mutex::new(Retained {
                states: LruCache::new_unbounded(),
                bytes: 0,
            }),
            max_bytes,
        }
    }

    /// Removes and returns the state of a thread if it is the one at `head`. The run that takes it
    /// stores its own state when it ends.
    pub(crate) fn take(&self, thread: &ThreadId, head: &ThreadHead) -> Option<StateAtHead> {
        let state = self.retained.lock().remove(thread)?;
        (state.head == *head).then_some(state)
    }

    /// Drops the state of a thread.
    pub(crate) fn remove(&self, thread: &ThreadId) {
        let removed = self.retained.lock().remove(thread);
        // The state is dropped after the lock is released.
        drop(removed);
    }

    /// Reports whether a state of the thread is retained.
    #[cfg(test)]
    pub(crate) fn contains(&self, thread: &ThreadId) -> bool {
        self.retained.lock().states.contains_key(thread)
    }

    /// Retains the state of a thread, and evicts others if the total size requires it.
    pub(crate) fn store(&self, thread: &ThreadId, state: StateAtHead) {
        let bytes = state.size.bytes();
        let state = RetainedState {
            state,
            stored_at: Instant::now(),
        };
        let mut retained = self.retained.lock();
        let mut evicted = Vec::from_iter(retained.remove(thread));
        if bytes <= self.max_bytes {
            retained.states.insert(thread.clone(), state);
            retained.bytes += bytes;
        }
        while retained.bytes > self.max_bytes
            && let Some(former) = retained.evict()
        {
            evicted.push(former);
        }
        // States are dropped after the lock is released.
        drop(retained);
    }

    /// Evicts states that become unused, as long as the future is polled.
    pub(crate) async fn evict_unused_states(&self) {
        let mut ticks = interval(EVICTION_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            while let Some(state) = self.evict_unused() {
                // To drop a large state takes milliseconds.
                drop(state);
                tokio::task::yield_now().await;
            }
        }
    }

    /// Removes and returns an unused state if the total size requires it.
    fn evict_unused(&self) -> Option<StateAtHead> {
        let mut retained = self.retained.lock();
        let (_, oldest) = retained.states.iter().next()?;
        let is_unused = oldest.stored_at.elapsed() >= UNUSED_AFTER;
        if is_unused && retained.bytes > MAX_UNUSED_BYTES {
            retained.evict()
        } else {
            None
        }
    }
}

#[cfg(test)]
#[path = "thread_heads_tests.rs"]
mod tests;
