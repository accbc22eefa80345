//! Reading the thread of a run: what was accepted does not fail because the store was away for a moment.

use std::time::Duration;

use tokio::time::Instant;

use super::super::store::StoreError;
use super::Execution;
use super::end::StreamEnd;
use crate::runtime::checkpoint::CheckpointError;

/// The wait before a read that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How long the store may be away before the run is given back. Less than all of its preparation may take.
const READ_PATIENCE: Duration = Duration::from_secs(45);

impl Execution {
    /// Reads, again and again while the store fails and nobody has the run stop. Who asks bounds the time.
    pub(super) async fn read<T, F>(&self, read: impl Fn() -> F) -> Result<T, StreamEnd>
    where
        F: Future<Output = Result<T, CheckpointError>>,
    {
        let began = Instant::now();
        loop {
            match read().await {
                Err(CheckpointError::Store(StoreError::Unavailable(_)))
                    if began.elapsed() >= READ_PATIENCE =>
                {
                    return Err(StreamEnd::Away);
                }
                Err(CheckpointError::Store(error)) => {
                    tracing::warn!(%error, "the thread of the run cannot be read yet")
                }
                found => {
                    return found.map_err(|error| {
                        StreamEnd::failed(
                            "StorageError",
                            format!("the thread cannot be read: {error}"),
                        )
                    });
                }
            }
            if self
                .live
                .token
                .run_until_cancelled(tokio::time::sleep(RETRY))
                .await
                .is_none()
            {
                return Err(self.live.stop_reason().into());
            }
        }
    }
}
