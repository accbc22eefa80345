//! Records and applies cancel requests.

use std::sync::Arc;

use crate::definition::{CancelAction, RunRecord};
use crate::kernel::{RunError, Runtime, StopSignal};
use crate::ports::WakeSignal;
use crate::termination::end_queued;
use deerflow_core::fail_points;
use deerflow_core::ids::RunId;

impl Runtime {
    /// Records the cancel request, then applies it.
    pub(crate) async fn request_cancel(
        self: &Arc<Self>,
        run_id: &RunId,
        action: CancelAction,
    ) -> Result<(), RunError> {
        let Some(record) = self
            .ports
            .create
            .request_cancel(run_id, action, self.ports.clock.now())
            .await?
        else {
            return Err(RunError::NotFound(run_id.clone()));
        };
        fail_points::pass("cancel.written");
        self.stop(&record).await;
        fail_points::pass("cancel.told");
        Ok(())
    }

    /// Applies a recorded cancel request: ends a queued run, and signals the owner of an executed
    /// one.
    pub(crate) async fn stop(self: &Arc<Self>, record: &RunRecord) {
        if record.status.is_terminal() {
            return;
        }
        if !record.status.is_owned() {
            end_queued(record, self).await;
        } else if let Some(active) = self
            .registry
            .active
            .get(&record.run_id)
            .filter(|active| !active.is_waiting())
        {
            active.stop(StopSignal::Cancel(
                record.cancel.unwrap_or(CancelAction::Interrupt),
            ));
        } else {
            self.ports
                .bell
                .ring(WakeSignal::Cancelled(record.run_id.clone()));
        }
    }
}
