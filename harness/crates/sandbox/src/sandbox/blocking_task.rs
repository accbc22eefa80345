//! Runs blocking file operations outside of the async runtime.

use super::file_error::FileFailure;

/// Runs a blocking operation on the blocking thread pool.
///
/// # Errors
/// The error of the operation; [`FileFailure::Aborted`] if it panicked or was cancelled.
pub async fn run_blocking<T, Op>(operation: Op) -> Result<T, FileFailure>
where
    T: Send + 'static,
    Op: FnOnce() -> Result<T, FileFailure> + Send + 'static,
{
    match tokio::task::spawn_blocking(operation).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, "file operation panicked or was cancelled");
            Err(FileFailure::Aborted)
        }
    }
}
