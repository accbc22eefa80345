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

/// Progress of one call, written by the run's owner in a [`RunCommit`](crate::runs::store::RunCommit).
#[derive(Debug, Clone, PartialEq)]
pub struct CallEntry {
    /// Key of the call: unique within the run, and the same when the call is repeated.
    pub key: String,
    /// Progress of the call. A later entry replaces an earlier one.
    pub progress: CallProgress,
}

/// Reads the tool calls that the attempts of a run recorded. Entries are retained until the run
/// ends.
#[async_trait]
pub trait ToolLedger: Send + Sync + std::fmt::Debug {
    /// Returns the progress of the call with this key.
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError>;
}
