//! States of threads that this process wrote last, so that the next run of such a thread need not
//! read it.

use std::sync::Arc;

use hashlink::LruCache;
use parking_lot::Mutex;

use super::state_size::StateSize;
use crate::checkpoint::ThreadHead;
use deerflow_core::ids::ThreadId;
use deerflow_core::state::ThreadState;

/// Maximum total size of the retained states, in estimated bytes.
const MAX_BYTES: usize = 64 << 20;

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
    states: LruCache<ThreadId, StateAtHead>,
    bytes: usize,
}

impl Default for ThreadHeads {
    fn default() -> Self {
        Self::bounded(MAX_BYTES)
    }
}

impl ThreadHeads {
    fn bounded(max_bytes: usize) -> Self {
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
        let mut retained = self.retained.lock();
        let state = retained.states.remove(thread)?;
        retained.bytes -= state.size.bytes();
        (state.head == *head).then_some(state)
    }

    /// Drops the state of a thread.
    pub(crate) fn remove(&self, thread: &ThreadId) {
        let mut retained = self.retained.lock();
        let removed = retained.states.remove(thread);
        if let Some(state) = &removed {
            retained.bytes -= state.size.bytes();
        }
        // The state is dropped after the lock is released.
        drop(retained);
    }

    /// Reports whether a state of the thread is retained.
    #[cfg(test)]
    pub(crate) fn contains(&self, thread: &ThreadId) -> bool {
        self.retained.lock().states.contains_key(thread)
    }

    /// Retains the state of a thread, and evicts others if the total size requires it.
    pub(crate) fn store(&self, thread: &ThreadId, state: StateAtHead) {
        let bytes = state.size.bytes();
        if bytes > self.max_bytes {
            return;
        }
        let mut evicted = Vec::new();
        let mut retained = self.retained.lock();
        retained.bytes += bytes;
        if let Some(former) = retained.states.insert(thread.clone(), state) {
            retained.bytes -= former.size.bytes();
            evicted.push(former);
        }
        while retained.bytes > self.max_bytes
            && let Some((_, former)) = retained.states.remove_lru()
        {
            retained.bytes -= former.size.bytes();
            evicted.push(former);
        }
        // States are dropped after the lock is released.
        drop(retained);
    }
}

#[cfg(test)]
#[path = "thread_heads_tests.rs"]
mod tests;
