//! Calls that tell of a run's end: written with the end, sent later, until somebody takes them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StoreError;
use crate::ids::RunId;
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

/// A call as its operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookLetter {
    /// The run that it tells of.
    pub run_id: RunId,
    /// Where to.
    pub url: String,
    /// When the run ended.
    pub ended_at: DateTime<Utc>,
    /// How often it was tried since it was made, or sent again; a rest of its receiver counts as a try.
    pub tries: u32,
    /// When it is tried next; without that it is a dead letter.
    pub due_at: Option<DateTime<Utc>>,
    /// Since when it is a dead letter.
    pub died_at: Option<DateTime<Utc>>,
    /// Why it was not taken when it was last tried.
    pub last_error: Option<String>,
}

/// Keeps the calls until they are taken or given up. A run has at most one; it does not go with the run.
#[async_trait]
pub trait WebhookOutbox: Send + Sync + std::fmt::Debug {
    /// Calls that are due at `now`, oldest first, at most `limit`. Until `leased_until` no other call gets them.
    async fn due(
        &self,
        now: DateTime<Utc>,
        leased_until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// The call was taken: it is forgotten.
    async fn delivered(&self, run: &RunId) -> Result<(), StoreError>;

    /// The calls were not taken at `at`, because of `error`. They are due again at `again_at`; without that they are dead letters,
    /// kept but not tried any more.
    async fn failed(
        &self,
        runs: &[RunId],
        error: &str,
        again_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Calls that were not tried after all: they are due at `at`.
    async fn put_back(&self, runs: &[RunId], at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Calls that were not taken yet, or only the dead letters, those of the last ends first.
    async fn letters(
        &self,
        only_dead: bool,
        limit: usize,
    ) -> Result<Vec<WebhookLetter>, StoreError>;

    /// Has a call sent at `at`, with as many tries as a new one. False when there is none.
    async fn resend(&self, run: &RunId, at: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Forgets up to `most` dead letters, with all they would have said, that died at `before` or earlier. Gives their number.
    async fn sweep(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;
}
