//! Ends an execution without an end of the run: the run is released, or another process ended it.

use super::stream_end::StreamEnd;
use crate::definition::RunStatus;
use crate::encoding::error_frame;
use crate::execution::Execution;
use crate::kernel::RunOutcome;
use crate::ports::{CommitError, LifecycleKind, WakeSignal};
use crate::stream_bridge::TerminalKind;
use crate::termination::{END_RETRY_INTERVAL, terminal_of};
use deerflow_core::actor_context::Owner;
use deerflow_core::fail_points;

impl Execution {
    /// Releases a run that this process must not end, or publishes the end that another process
    /// stored.
    pub(super) async fn end_without_commit(&mut self, end: &StreamEnd) -> Option<RunOutcome> {
        let outcome = match end {
            StreamEnd::Released => {
                if let Err(error) = self.release().await {
                    tracing::warn!(
                        %error,
                        "cannot release the run; it resumes after the lease of this process expires"
                    );
                }
                None
            }
            StreamEnd::StoreUnavailable => {
                self.release_when_store_returns().await;
                None
            }
            StreamEnd::Gone => {
                tracing::warn!("the run was deleted or ended by another process; no more writes");
                self.publish_stored_end().await
            }
            _ => {
                tracing::warn!("another attempt owns the run; no more writes");
                None
            }
        };
        self.notify(LifecycleKind::RunLeft).await;
        outcome
    }

    /// Publishes the end that another process has stored. Callers that wait here read it from the
    /// store, unless the run was deleted.
    async fn publish_stored_end(&mut self) -> Option<RunOutcome> {
        let stored = match self
            .ports
            .query
            .get(&self.record.run_id, &Owner::None)
            .await
        {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "cannot read how the run ended; its subscribers poll the store"
                );
                return None;
            }
        };
        let kind = stored
            .as_ref()
            .map_or(Some(TerminalKind::Cancel), terminal_of)?;
        let failed = stored.as_ref().filter(|_| kind == TerminalKind::Error);
        let data = failed.map(|run| {
            error_frame(
                run.error_name(),
                run.error.as_deref().unwrap_or("the run failed"),
            )
            .data
            .into_bytes()
        });
        // The other process may have published it already.
        let _already_published = self
            .ports
            .bridge
            .publish_terminal(&self.key, kind, data)
            .await;
        self.clean_up().await;
        let error = ("RunLost".to_owned(), "the run was deleted".to_owned());
        stored.is_none().then_some(RunOutcome {
            status: RunStatus::Error,
            error: Some(error),
            values: None,
        })
    }

    /// Releases the run at its last step. Events since then are repeated by the process that
    /// resumes it.
    async fn release(&mut self) -> Result<(), CommitError> {
        self.commit_buffer
            .set_usage(self.callbacks.completion_data());
        if let Some(deferred_checkpoint) = self.deferred_checkpoint.take() {
            self.commit_buffer.checkpoint(*deferred_checkpoint);
        }
        while let Some(entry) = self.call_entries.try_recv() {
            self.commit_buffer.call(entry);
        }
        fail_points::pass("run.before-giving-back");
        self.commit_buffer.release().await?;
        fail_points::pass("run.given-back");
        self.ports.bell.ring(WakeSignal::Waiting);
        Ok(())
    }

    /// Releases the run when the store is available again, without a time limit: no other process
    /// takes over the run while this process has a valid lease. Returns early if the store rejects
    /// the release or this process shuts down.
    async fn release_when_store_returns(&mut self) {
        tracing::error!("the store is unavailable for too long; the run resumes when it is back");
        while let Err(CommitError::Store(error)) = self.release().await {
            tracing::warn!(%error, "cannot release the run yet");
            // A cancel request is handled after the release.
            if self
                .ports
                .tasks
                .token()
                .run_until_cancelled(tokio::time::sleep(END_RETRY_INTERVAL))
                .await
                .is_none()
            {
                return;
            }
        }
    }
}
