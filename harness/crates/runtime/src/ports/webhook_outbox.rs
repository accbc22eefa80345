//! Outbox of webhook calls: written with the end of a run, and sent later until they are delivered.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::{RunRecord, StoreError};
use deerflow_core::ids::RunId;

/// Content of a webhook call, recorded at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookCall {
    /// URL to call.
    pub url: String,
    /// Start time of the run.
    pub started_at: DateTime<Utc>,
    /// Final state, if it is known.
    pub values: Option<Value>,
    /// Class and text of the error of a failed run.
    pub error: Option<(String, String)>,
}

/// Webhook call that is leased for delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookDelivery {
    /// Record of the ended run.
    pub run: RunRecord,
    /// Content recorded at the end of the run.
    pub call: WebhookCall,
    /// End time of the run.
    pub ended_at: DateTime<Utc>,
    /// Number of previous delivery attempts.
    pub tries: u32,
}

/// Entry of the outbox, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOutboxEntry {
    /// Id of the run.
    pub run_id: RunId,
    /// URL to call.
    pub url: String,
    /// End time of the run.
    pub ended_at: DateTime<Utc>,
    /// Number of delivery attempts since the call was created or resent. A postponement because its
    /// receiver is paused counts as an attempt.
    pub tries: u32,
    /// Time of the next attempt; `None` for a dead letter.
    pub due_at: Option<DateTime<Utc>>,
    /// Time at which the call became a dead letter.
    pub died_at: Option<DateTime<Utc>>,
    /// Error of the last attempt.
    pub last_error: Option<String>,
}

/// Stores webhook calls until they are delivered or swept. A run has at most one; it is not deleted
/// with the run.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use deerflow_runtime::runs::store::{StoreError, WebhookDelivery, WebhookOutbox};
///
/// /// Sends the calls that are due, and tries failed ones again after a minute.
/// async fn deliver(
///     outbox: &dyn WebhookOutbox,
///     now: DateTime<Utc>,
///     send: impl AsyncFn(&WebhookDelivery) -> Result<(), String>,
/// ) -> Result<(), StoreError> {
///     let minute = TimeDelta::minutes(1);
///     for delivery in outbox.due(now, now + minute, 10).await? {
///         let run = &delivery.run.run_id;
///         match send(&delivery).await {
///             Ok(()) => outbox.delivered(run).await?,
///             Err(error) => {
///                 let runs = std::slice::from_ref(run);
///                 outbox.failed(runs, &error, Some(now + minute), now).await?;
///             }
///         }
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait WebhookOutbox: Send + Sync + std::fmt::Debug {
    /// Leases up to `limit` calls that are due at `now`, oldest first. Other calls do not return
    /// them until `leased_until`.
    async fn due(
        &self,
        now: DateTime<Utc>,
        leased_until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// Deletes a delivered call.
    async fn delivered(&self, run: &RunId) -> Result<(), StoreError>;

    /// Records that the delivery of these calls failed at `at` with `error`. They are due again at
    /// `again_at`; without it they become dead letters, which are stored but not retried.
    async fn failed(
        &self,
        runs: &[RunId],
        error: &str,
        again_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Releases calls that were not attempted; they are due at `at`.
    async fn put_back(&self, runs: &[RunId], at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Lists undelivered calls, or only the dead letters, latest end first.
    async fn letters(
        &self,
        only_dead: bool,
        limit: usize,
    ) -> Result<Vec<WebhookOutboxEntry>, StoreError>;

    /// Schedules a call for `at` with a new budget of attempts. Returns `false` if it does not
    /// exist.
    async fn resend(&self, run: &RunId, at: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Deletes up to `most` calls, with their content, that became dead letters at or before
    /// `before`. Returns their number.
    async fn sweep(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;
}
