//! Record of a session, so that another process goes on with it or disposes it.

use serde::{Deserialize, Serialize};

use crate::adapter::SessionId;

/// Session of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Id that the adapter gave.
    pub id: SessionId,
    /// Time of creation in milliseconds since 1970.
    pub created_at_ms: u64,
}
