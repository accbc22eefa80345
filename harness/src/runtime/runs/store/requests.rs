//! Requests that may come again: what each made when it came first.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::StoreError;
use crate::ids::{RunId, ThreadId};

/// What a request is known by when it comes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// Who asks.
    pub user_id: String,
    /// What for: the route's pattern.
    pub route: String,
    /// What the client calls the request.
    pub name: String,
    /// Which of the things that the request makes, from 0.
    pub part: u32,
    /// A hash of all that is asked.
    pub digest: String,
    /// Until when it is known.
    pub expires_at: DateTime<Utc>,
}

impl RequestKey {
    /// The key of another of the things that the request makes.
    #[must_use]
    pub fn part(&self, part: u32) -> Self {
        Self {
            part,
            ..self.clone()
        }
    }
}

/// What a request made. It may be gone by now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Made {
    /// A thread.
    Thread(ThreadId),
    /// A run on its thread.
    Run(ThreadId, RunId),
    /// A cron.
    Cron(Uuid),
    /// Something that no store keeps, and what was answered.
    Answer(Value),
}

/// What a store knows of a request's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// The same request came before.
    Again(Made),
    /// Another request came under this key.
    Other,
}

/// Keeps what requests made. Those that make threads, runs and crons are written by the stores of these, in the transaction that makes
/// the thing, and of two at once under one key one makes it and the other gets to know.
#[async_trait]
pub trait RequestStore: Send + Sync + std::fmt::Debug {
    /// What is known of the key at `at`.
    async fn known(&self, key: &RequestKey, at: DateTime<Utc>)
    -> Result<Option<Known>, StoreError>;

    /// Keeps what the request made, unless something is known of its key: then it gives that.
    async fn keep(
        &self,
        key: &RequestKey,
        made: Made,
        at: DateTime<Utc>,
    ) -> Result<Option<Known>, StoreError>;

    /// Forgets the key: what the request made was undone.
    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError>;

    /// Forgets up to `most` keys that are over at `at`, and says how many those were.
    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;
}
