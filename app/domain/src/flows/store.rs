//! Port of the flow store.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::record::{FlowContent, FlowRecord, FlowSummary, FlowVersionRecord, StoredFlow};

/// Owner of the contents of system flows, which runs pin like those of users.
pub const SYSTEM_OWNER: &str = "";

/// State of a flow that a write requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Any.
    Any,
    /// The user has no flow of this slug.
    Absent,
    /// The user has a flow of this slug.
    Present,
    /// The current content has this hash.
    Hash(String),
}

/// A new version of a flow, or a new flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowWrite {
    /// Slug.
    pub slug: String,
    /// State that the write requires.
    pub expected: Expected,
    /// Content.
    pub content: FlowContent,
    /// Summary of the content.
    pub summary: FlowSummary,
}

/// Limits of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowQuota {
    /// Maximum number of flows.
    pub flows: usize,
    /// Maximum number of versions of one flow, at least 1; the oldest ones are removed.
    pub versions: usize,
}

/// Reason why nothing of a write was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The user already has a flow of this slug.
    #[error("a flow {0:?} exists already")]
    Taken(String),
    /// The user has no flow of this slug.
    #[error("there is no flow {0:?}")]
    NotFound(String),
    /// The flow has another content than the write requires.
    #[error("the flow {0:?} has changed since it was read")]
    Changed(String),
    /// The user would have too many flows.
    #[error("a user may have at most {0} flows, delete one first")]
    TooMany(usize),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletedFlow {
    /// Deleted with all its versions.
    Removed,
    /// The user has no such flow.
    NotFound,
    /// The flow has another content than the caller requires.
    Changed,
}

/// Page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPage {
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

/// Stores the flows of users with their versions. Flows of other users are treated as nonexistent.
///
/// A content is stored once per user and hash. It stays readable by its hash while a version has
/// it, and while a thread exists in which a run pinned it; [`sweep`](FlowStore::sweep) removes the
/// rest.
#[async_trait]
pub trait FlowStore: Send + Sync + std::fmt::Debug {
    /// Stores new versions of several flows of one user, all or none, and returns their records in
    /// the order of `writes`. A write whose content equals the current one adds no version.
    async fn save(
        &self,
        user: &str,
        writes: Vec<FlowWrite>,
        quota: FlowQuota,
        at: DateTime<Utc>,
    ) -> Result<Vec<FlowRecord>, SaveError>;

    /// Returns a flow in one version, or in the current one.
    async fn get(
        &self,
        user: &str,
        slug: &str,
        version: Option<u32>,
    ) -> Result<Option<StoredFlow>, StoreError>;

    /// Returns the current version of a flow, without its content.
    async fn find(&self, user: &str, slug: &str) -> Result<Option<FlowRecord>, StoreError>;

    /// Returns flows in the order of their slugs.
    async fn list(&self, user: &str, page: FlowPage) -> Result<Vec<FlowRecord>, StoreError>;

    /// Counts the flows of a user.
    async fn count(&self, user: &str) -> Result<u64, StoreError>;

    /// Returns the stored versions of a flow, newest first; `None` if there is no such flow.
    async fn versions(
        &self,
        user: &str,
        slug: &str,
    ) -> Result<Option<Vec<FlowVersionRecord>>, StoreError>;

    /// Deletes a flow with its versions, if its current content has the hash `expected`.
    async fn delete(
        &self,
        user: &str,
        slug: &str,
        expected: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<DeletedFlow, StoreError>;

    /// Returns a content by its hash, also after its version is gone.
    async fn content(&self, owner: &str, hash: &str) -> Result<Option<FlowContent>, StoreError>;

    /// Stores a content that has no version, such as that of a system flow, so that runs can pin
    /// it. A later call renews it: it stays at least until a sweep of what is unused since `at`.
    async fn store_content(
        &self,
        owner: &str,
        content: FlowContent,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Deletes up to `limit` contents that have had no version since `before` and that no thread
    /// pins. Returns their number.
    async fn sweep(&self, before: DateTime<Utc>, limit: usize) -> Result<usize, StoreError>;
}
