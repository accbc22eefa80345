//! Creates runs whose callers receive the record before the outcome.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::definition::{RequestEcho, RunRecord, RunRequest};
use crate::dispatch::{RunHandle, create};
use crate::kernel::{RunError, Runtime};
use crate::streaming::{WaitOutcome, wait_service};

/// Creates runs and waits for them, for callers that need the record of a run before its outcome,
/// such as an HTTP handler that names the run in a header.
#[derive(Debug, Clone)]
pub struct RunWaits {
    runtime: Arc<Runtime>,
}

impl RunWaits {
    /// Creates the handle of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: runtime.clone(),
        }
    }

    /// Creates a run as [`RunsFacade::create_and_wait`](super::RunsFacade::create_and_wait) does,
    /// but returns the record at once, with a future of the outcome. The future also resolves for a
    /// run whose thread was deleted.
    #[tracing::instrument(name = "create_for_waiting", skip_all)]
    pub async fn create(
        &self,
        request: RunRequest,
    ) -> Result<(RunRecord, BoxFuture<'static, WaitOutcome>), RunError> {
        let RunHandle { record, active } = create(request, &self.runtime).await?;
        let runtime = self.runtime.clone();
        let waiting = {
            // The outcome does not need the input, which may be large.
            let record = RunRecord {
                kwargs: RequestEcho::default(),
                ..record.clone()
            };
            async move {
                match active.ended().await {
                    Some(outcome) => outcome.into(),
                    None => wait_service::wait(&record, &runtime)
                        .await
                        .unwrap_or_else(|error| WaitOutcome::unknown(&error)),
                }
            }
        };
        Ok((record, waiting.boxed()))
    }
}
