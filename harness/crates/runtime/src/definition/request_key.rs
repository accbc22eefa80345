//! Idempotency key of a request.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Idempotency key of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// User who sent the request.
    pub user_id: String,
    /// Pattern of the route.
    pub route: String,
    /// Key that the client sent.
    pub name: String,
    /// Index of the resource within the request, from 0.
    pub part: u32,
    /// Hash of the whole request.
    pub digest: String,
    /// Time until which the key is retained.
    pub expires_at: DateTime<Utc>,
}

impl RequestKey {
    /// Returns the key of another resource of the same request.
    #[must_use]
    pub fn part(&self, part: u32) -> Self {
        Self {
            part,
            ..self.clone()
        }
    }
}
