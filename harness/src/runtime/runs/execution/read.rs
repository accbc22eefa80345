//! Reading the thread of a run: what was accepted does not fail because the store was away for a moment.

use std::time::Duration;

use super::Execution;
use super::end::StreamEnd;
use crate::runtime::checkpoint::CheckpointError;

/// The wait before a read that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

impl Execution {
    /// Reads, again and again while the store fails and nobody has the run stop. Who asks bounds the time.
    pub(super) async fn read<T, F>(&self, read: impl Fn() -> F) -> Result<T, StreamEnd>
    where
        F: Future<Output = Result<T, CheckpointError>>,
    {
        loop {
            match read().await {
                Err(CheckpointError::Store(reason)) => tracing::warn!(reason, "the thread of the run cannot be read yet"),
                found => return found.map_err(|error| StreamEnd::failed("StorageError", format!("the thread cannot be read: {error}"))),
            }
            if self.live.token.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                return Err(self.live.stop_reason().into());
            }
        }
    }
}
