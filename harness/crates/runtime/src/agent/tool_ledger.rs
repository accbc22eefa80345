//! Ledger of a run's tool calls. After a takeover it determines which calls may be repeated.

use async_trait::async_trait;
use serde_json::Value;

use crate::definition::StoreError;
use deerflow_core::ids::RunId;

/// Progress of a recorded call. A call without an entry never started.
#[derive(Debug, Clone, PartialEq)]
pub enum CallProgress {
    /// The call started and may have had its effect.
    Started,
    /// The call ended with this result.
    Done(Value),
}

/// Progress of one call, written by the run's owner in a
/// [`RunCommit`](crate::runs::store::RunCommit).
#[derive(Debug, Clone, PartialEq)]
pub struct CallEntry {
    /// Key of the call: unique within the run, and the same when the call is repeated.
    pub key: String,
    /// Progress of the call. A later entry replaces an earlier one.
    pub progress: CallProgress,
}

/// Reads the tool calls that the attempts of a run recorded. Entries are retained until the run
/// ends.
///
/// ```
/// use deerflow_core::ids::RunId;
/// use deerflow_runtime::runs::store::{CallProgress, StoreError, ToolLedger};
///
/// /// Reports whether a call may have had its effect in an earlier attempt.
/// async fn has_started(
///     ledger: &dyn ToolLedger,
///     run: &RunId,
///     key: &str,
/// ) -> Result<bool, StoreError> {
///     let progress = ledger.progress(run, key).await?;
///     Ok(matches!(progress, Some(CallProgress::Started | CallProgress::Done(_))))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = deerflow_runtime::in_memory::InMemoryStores::new();
/// assert!(!has_started(&ledger, &RunId::parse("r1")?, "k1").await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ToolLedger: Send + Sync + std::fmt::Debug {
    /// Returns the progress of the call with this key.
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError>;
}
