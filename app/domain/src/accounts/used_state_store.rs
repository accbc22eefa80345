//! Port of the states of sign-ins through identity providers.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::session::TokenHash;

/// Remembers which states were used, for all nodes: a state completes one sign-in.
#[async_trait]
pub trait UsedStateStore: Send + Sync + std::fmt::Debug {
    /// Records the use of a state at `at`; `false` if it was used before. A use is remembered
    /// until `until`, when the state is too old anyway.
    async fn use_state(
        &self,
        state: &TokenHash,
        at: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}
