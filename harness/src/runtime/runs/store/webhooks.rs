//! Calls that tell of a run's end: written with the end, sent later, until somebody takes them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StoreError;
use crate::runtime::runs::RunRecord;

/// What a run's end has to say to its webhook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookCall {
    /// Where to.
    pub url: String,
    /// When the run began.
    pub started_at: DateTime<Utc>,
    /// The last state, when there is one.
    pub values: Option<Value>,
    /// The error's class and text, when it failed.
    pub error: Option<(String, String)>,
}

/// A call that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookDelivery {
    /// The run as it ended.
    pub run: RunRecord,
    /// What to say besides.
    pub call: WebhookCall,
    /// When the run ended.
    pub ended_at: DateTime<Utc>,
    /// How often it was tried before.
    pub tries: u32,
}

/// Keeps the calls until they are taken or given up. A run has at most one; it does not go with the run.
#[async_trait]
pub trait WebhookOutbox: Send + Sync + std::fmt::Debug {
    /// Calls that are due at `now`, oldest first, at most `limit`. Until `leased_until` no other call gets them.
    async fn due(&self, now: DateTime<Utc>, leased_until: DateTime<Utc>, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// The call was taken: it is forgotten.
    async fn delivered(&self, run: &crate::ids::RunId) -> Result<(), StoreError>;

    /// The call was not taken, because of `error`. It is due again at `again_at`; without that it is a dead letter, kept but not
    /// tried any more.
    async fn failed(&self, run: &crate::ids::RunId, error: &str, again_at: Option<DateTime<Utc>>) -> Result<(), StoreError>;
}
