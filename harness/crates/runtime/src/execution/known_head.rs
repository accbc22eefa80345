//! Start of a run without a read of its thread: the admission reported the thread's head, and this
//! process has the state at that head.

use std::sync::Arc;

use crate::checkpoint::ThreadHead;
use crate::definition::RunInput;
use crate::execution::{Execution, Progress};
use crate::kernel::{StateAtHead, StateSize};
use deerflow_core::state::ThreadState;

impl Execution {
    /// Starts at the thread's head without a read, if the head has no checkpoint or this process
    /// has its state. Returns `false` if the run has to read the thread.
    pub(super) fn load_known_head(&mut self) -> bool {
        let request = self.plan.request();
        let Some(head) = self.head.take().filter(|_| request.checkpoint.is_none()) else {
            return false;
        };
        let Some(checkpoint_id) = &head.checkpoint_id else {
            self.progress = self.without_checkpoint(head.log_tail);
            return true;
        };
        if !matches!(request.input, RunInput::Update(_)) {
            return false;
        }
        let heads = &self.runtime.registry.heads;
        let Some(known) = heads.take(self.plan.thread_id(), &head) else {
            return false;
        };
        self.ports.ids.heed(checkpoint_id);
        let state = if *known.state.definition() == self.plan.agent().channels() {
            known.state
        } else {
            Arc::new(self.defined(ThreadState::clone(&known.state)))
        };
        self.progress = Progress {
            before: state.clone(),
            size_before: Some(known.size),
            state,
            log_tail: head.log_tail,
            parent: head.checkpoint_id,
            step: known.step,
            ..Progress::default()
        };
        true
    }

    /// Retains the state that the run committed, for the next run of the thread.
    pub(super) fn retain_head(&self) {
        let progress = &self.progress;
        let is_stored = !progress.dirty && !progress.has_unsaved_input && progress.next.is_empty();
        if !is_stored || self.plan.request().scope.is_temporary() {
            return;
        }
        let size = match progress.size_before {
            Some(size) => size.followed_by(&progress.state, &progress.before),
            None => StateSize::of(&progress.state),
        };
        let state = StateAtHead {
            head: ThreadHead {
                checkpoint_id: progress.parent.clone(),
                log_tail: progress.log_tail,
            },
            state: progress.state.clone(),
            size,
            step: progress.step,
        };
        let heads = &self.runtime.registry.heads;
        heads.store(self.plan.thread_id(), state);
    }
}

#[cfg(test)]
#[path = "known_head_tests.rs"]
mod tests;
