//! Used states of sign-ins in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::InMemoryAccounts;
use crate::accounts::session::TokenHash;
use crate::accounts::used_state_store::UsedStateStore;

#[async_trait]
impl UsedStateStore for InMemoryAccounts {
    async fn use_state(
        &self,
        state: &TokenHash,
        at: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        tables.used_states.retain(|_, until| *until > at);
        Ok(tables.used_states.insert(state.clone(), until).is_none())
    }
}
