//! Port that deletes runs.

use async_trait::async_trait;

use crate::definition::StoreError;
use deerflow_core::ids::{RunId, ThreadId};

/// Deletes runs.
///
/// ```
/// use deerflow_core::ids::RunId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::RunDeleteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert!(!InMemoryStores::new().delete(&RunId::parse("r1")?).await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunDeleteStore: Send + Sync + std::fmt::Debug {
    /// Deletes an ended run with its events and checkpoints. Returns `false` if it does not exist.
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError>;

    /// Deletes all runs of a thread with their events. The checkpointer deletes the checkpoints.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
