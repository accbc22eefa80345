//! The ledger of a run's tool calls: who takes the run over reads in it which of them may be repeated.

use async_trait::async_trait;
use serde_json::Value;

use super::error::StoreError;
use crate::ids::RunId;

/// How far a call has come whose repetition matters. One that nothing is known of never began.
#[derive(Debug, Clone, PartialEq)]
pub enum CallProgress {
    /// It has begun, so it may have had its effect.
    Started,
    /// It has ended, with this.
    Done(Value),
}

/// A call's progress, as the run's owner writes it with a [`RunCommit`](super::RunCommit).
#[derive(Debug, Clone, PartialEq)]
pub struct CallEntry {
    /// The call, unique within the run and the same when it is made again.
    pub key: String,
    /// How far it has come. The last that was written counts.
    pub progress: CallProgress,
}

/// Reads what the owners of a run wrote down of its calls. It stays until the run is over.
#[async_trait]
pub trait ToolLedger: Send + Sync + std::fmt::Debug {
    /// How far the call with this key has come.
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError>;
}
