//! Builds the stored end of a run.

use bytes::Bytes;

use super::stream_end::StreamEnd;
use crate::definition::{CancelAction, RunFailure, RunStatus, StopReason, ThreadStatus};
use crate::encoding::values_json;
use crate::execution::Execution;
use crate::ports::{RunEnd, WebhookCall};

impl Execution {
    /// Builds the end of the run for the store.
    pub(super) fn run_end(&self, end: &StreamEnd, status: RunStatus) -> RunEnd {
        let (rolled_back, failure) = (is_rollback(end), failure_of(end));
        let has_pending_nodes = if rolled_back {
            self.progress.pending_before
        } else {
            !self.progress.next.is_empty()
        };
        RunEnd {
            status,
            stop_reason: stop_reason(end).map(String::from),
            completion: self.callbacks.completion_data(),
            thread_status: thread_status(status, has_pending_nodes, rolled_back),
            title: self.title(rolled_back),
            webhook: self.webhook(end, rolled_back, failure.as_ref()),
            kept_values: self
                .stores_values_for_replay()
                .then(|| self.last_values(end, rolled_back)),
            discard_checkpoints: rolled_back,
            forget_calls: self.record.attempt > 1 || self.commit_buffer.has_calls(),
            error_name: failure.as_ref().map(|failure| failure.name.clone()),
            error: failure.map(|failure| failure.message),
        }
    }

    fn webhook(
        &self,
        end: &StreamEnd,
        rolled_back: bool,
        failure: Option<&RunFailure>,
    ) -> Option<WebhookCall> {
        let url = self.record.webhook.clone()?;
        let values = serde_json::from_slice(&self.last_values(end, rolled_back)).ok();
        Some(WebhookCall {
            url,
            started_at: self.record.updated_at,
            values,
            error: failure.cloned().map(Into::into),
        })
    }

    /// Reports whether the final state is stored for repeated requests, because the thread is
    /// deleted with the run.
    fn stores_values_for_replay(&self) -> bool {
        let request = self.plan.request();
        request.scope.is_temporary() && request.idempotency_key().is_some()
    }

    fn last_values(&self, end: &StreamEnd, rolled_back: bool) -> Bytes {
        let state = if rolled_back {
            &self.progress.before
        } else {
            &self.progress.state
        };
        values_json(state, end.interrupts())
    }

    fn title(&self, rolled_back: bool) -> Option<String> {
        if rolled_back {
            return None;
        }
        self.progress
            .state
            .title()
            .map(str::to_owned)
            .or_else(|| self.callbacks.title())
    }
}

pub(super) fn is_rollback(end: &StreamEnd) -> bool {
    *end == StreamEnd::Cancelled(CancelAction::Rollback)
}

/// Returns the error of an end, if it is a failure.
pub(super) fn failure_of(end: &StreamEnd) -> Option<RunFailure> {
    match end {
        StreamEnd::Failed { name, message, .. } => Some(RunFailure::new(name, message)),
        StreamEnd::TimedOut(reason) => Some(RunFailure::new("TimeoutError", *reason)),
        StreamEnd::Cancelled(CancelAction::Rollback) => {
            Some(RunFailure::new("UserRollback", "Rolled back by user"))
        }
        StreamEnd::Cancelled(CancelAction::Interrupt) | StreamEnd::Done(_) => None,
        StreamEnd::Gone | StreamEnd::Lost | StreamEnd::Released | StreamEnd::StoreUnavailable => {
            None
        }
    }
}

fn stop_reason(end: &StreamEnd) -> Option<StopReason> {
    match end {
        StreamEnd::Done(outcome) => outcome.stop_reason.as_deref().map(StopReason::from),
        StreamEnd::Failed { stop_reason, .. } => stop_reason.clone(),
        StreamEnd::Cancelled(CancelAction::Rollback) => Some(StopReason::RolledBack),
        _ => None,
    }
}

/// Returns the thread's status after the run. A rolled-back run restores the status from before the
/// run.
fn thread_status(status: RunStatus, has_pending_nodes: bool, rolled_back: bool) -> ThreadStatus {
    match (rolled_back, has_pending_nodes) {
        (true, true) => ThreadStatus::Interrupted,
        (true, false) => ThreadStatus::Idle,
        (false, has_pending_nodes) => ThreadStatus::after(status, has_pending_nodes),
    }
}
