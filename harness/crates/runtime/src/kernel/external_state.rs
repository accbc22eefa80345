//! States that updates from outside of runs stored.

use std::sync::Arc;

use super::runtime::Runtime;
use super::state_size::StateSize;
use super::thread_heads::StateAtHead;
use crate::checkpoint::{Snapshot, ThreadHead};

impl Runtime {
    /// Retains the state of an update from outside of a run, which is stored as the newest
    /// checkpoint of its thread, so that the next run of the thread need not read it. A state with
    /// pending tasks is not retained.
    pub fn retain_state(&self, stored: &Snapshot) {
        let Snapshot {
            meta,
            state,
            log_tail,
        } = stored;
        if !meta.next.is_empty() {
            // No run can use an earlier state either.
            self.registry.heads.remove(&meta.thread_id);
            return;
        }
        let state = StateAtHead {
            head: ThreadHead {
                checkpoint_id: Some(meta.checkpoint_id.clone()),
                log_tail: *log_tail,
            },
            size: StateSize::of(state),
            state: Arc::new(state.clone()),
            step: meta.step,
        };
        self.registry.heads.store(&meta.thread_id, state);
    }
}
