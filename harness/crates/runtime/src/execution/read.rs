//! Reads of the thread, with retries during a store outage.

use tokio::time::Instant;

use super::stream_end::StreamEnd;
use crate::checkpoint::CheckpointError;
use crate::definition::StoreError;
use crate::definition::read_retry::{READ_TIMEOUT, RETRY};
use crate::execution::Execution;

impl Execution {
    /// Calls `read`, and retries while the store fails and the run is not stopped. [`READ_TIMEOUT`]
    /// limits an outage; the timeout of the prepare phase limits the total time.
    pub(super) async fn read<T, F>(&self, read: impl Fn() -> F) -> Result<T, StreamEnd>
    where
        F: Future<Output = Result<T, CheckpointError>>,
    {
        let began = Instant::now();
        loop {
            match read().await {
                Err(CheckpointError::Store(StoreError::Unavailable(_)))
                    if began.elapsed() >= READ_TIMEOUT =>
                {
                    return Err(StreamEnd::StoreUnavailable);
                }
                Err(CheckpointError::Store(error)) => {
                    tracing::warn!(%error, "cannot read the thread of the run yet")
                }
                result => {
                    return result.map_err(|error| {
                        StreamEnd::failed(
                            "StorageError",
                            format!("the thread cannot be read: {error}"),
                        )
                    });
                }
            }
            if self
                .active
                .token
                .run_until_cancelled(tokio::time::sleep(RETRY))
                .await
                .is_none()
            {
                return Err(self.active.stop_reason().into());
            }
        }
    }
}
