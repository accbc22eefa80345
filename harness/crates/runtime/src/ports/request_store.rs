//! Idempotency of requests: the resource that the first request of a key created.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::definition::{RequestKey, StoreError};
use deerflow_core::ids::{RunId, ThreadId};

/// Resource that a request created. It may have been deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CreatedResource {
    /// A thread.
    Thread(ThreadId),
    /// A run with its thread.
    Run(ThreadId, RunId),
    /// A cron.
    Cron(Uuid),
    /// No stored resource; the response is replayed.
    Answer(Value),
}

/// State of a request key that was used before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// The same request was made before.
    Again(CreatedResource),
    /// Another request was made under this key.
    Other,
}

/// Stores the resources that requests created. For threads, runs and crons, the stores of these
/// write the key in the transaction that creates the resource. Of two concurrent requests with one
/// key, one creates the resource and the other receives it.
///
/// ```
/// use chrono::{DateTime, TimeDelta};
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{CreatedResource, KeyState, RequestKey, RequestStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (requests, now) = (InMemoryStores::new(), DateTime::UNIX_EPOCH);
/// let key = RequestKey {
///     user_id: "ann".to_owned(),
///     route: "/threads".to_owned(),
///     name: "k1".to_owned(),
///     part: 0,
///     digest: "d1".to_owned(),
///     expires_at: now + TimeDelta::hours(24),
/// };
/// let response = CreatedResource::Answer("created".into());
/// assert_eq!(requests.keep(&key, response.clone(), now).await?, None);
/// assert_eq!(requests.known(&key, now).await?, Some(KeyState::Again(response)));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RequestStore: Send + Sync + std::fmt::Debug {
    /// Returns the state of the key at `at`, or `None` if it is new.
    async fn known(
        &self,
        key: &RequestKey,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError>;

    /// Records the resource of a new key. For a used key, returns its state without a change.
    async fn keep(
        &self,
        key: &RequestKey,
        resource: CreatedResource,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError>;

    /// Deletes the key after the creation of the resource was undone.
    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError>;

    /// Deletes up to `most` keys that have expired at `at`, and returns their number.
    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;
}
