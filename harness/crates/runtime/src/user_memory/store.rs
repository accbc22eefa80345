//! Port of the user memory store: documents and pending updates of threads.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::document::MemoryDocument;
use crate::definition::StoreError;
use deerflow_core::ids::ThreadId;

/// Owner of a memory: a user, or a user together with one of the user's custom agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryScope {
    /// Id of the user.
    pub user: String,
    /// Custom agent; `None` for the default agent.
    pub agent: Option<String>,
}

impl MemoryScope {
    /// Returns the scope of the user without a custom agent.
    pub fn of_user(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            agent: None,
        }
    }
}

/// Stored memory document.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMemory {
    /// The document; its `revision` is the stored one.
    pub document: MemoryDocument,
    /// Number of changes that the user made. After such a change, earlier injected text must not be
    /// reused.
    pub edits: i64,
}

/// Update of a memory that a run registers with a commit, for its thread.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryUpdate {
    /// Scope of the memory to update.
    pub scope: MemoryScope,
    /// Time at which the update is due.
    pub due: DateTime<Utc>,
}

/// Pending update of a thread, claimed by a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingUpdate {
    /// Scope of the memory to update.
    pub scope: MemoryScope,
    /// Id of the thread.
    pub thread: ThreadId,
    /// Id of the last processed message.
    pub watermark: Option<String>,
    /// Sequence number of the update, which detects updates that are registered during processing.
    pub number: i64,
    /// Number of failed attempts.
    pub tries: i64,
}

/// Stores user memories. Guarantees: a document is changed only with its current revision; pending
/// updates survive a restart, are claimed by one worker at a time, and are claimable again when the
/// worker's lease expires.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_runtime::user_memory::{
///     InMemoryUserMemoryStore, MemoryDocument, MemoryScope, UserMemoryStore,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, now) = (InMemoryUserMemoryStore::default(), DateTime::UNIX_EPOCH);
/// let (scope, document) = (MemoryScope::of_user("ann"), MemoryDocument::default());
/// assert!(store.write(&scope, &document, true, now).await?);
/// // The stored revision has changed, so a second write of the same document is rejected.
/// assert!(!store.write(&scope, &document, true, now).await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait UserMemoryStore: Send + Sync + std::fmt::Debug {
    /// Returns the document of a scope; `None` if there is none.
    async fn read(&self, scope: &MemoryScope) -> Result<Option<StoredMemory>, StoreError>;

    /// Lists the user's custom agents that have documents or pending updates.
    async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError>;

    /// Writes the document if the stored revision equals the document's (0 for none), and
    /// increments the revision. Returns `false` after a concurrent change. `edited` is `true` for a
    /// change by the user.
    async fn write(
        &self,
        scope: &MemoryScope,
        document: &MemoryDocument,
        edited: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Registers a pending update of a thread, due at `due`; a later call replaces the due time.
    async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Claims up to `most` due updates until `until`, earliest due time first.
    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<PendingUpdate>, StoreError>;

    /// Completes a claimed update and stores `watermark`. If a new update of the thread was
    /// registered after the claim, it stays pending.
    async fn done(&self, update: &PendingUpdate, watermark: Option<&str>)
    -> Result<(), StoreError>;

    /// Records a failed attempt and makes the update due again at `due`.
    async fn again(&self, update: &PendingUpdate, due: DateTime<Utc>) -> Result<(), StoreError>;

    /// Releases a claim without counting an attempt; other workers can claim the update at once.
    async fn give_back(&self, update: &PendingUpdate) -> Result<(), StoreError>;

    /// Sets the due time of the thread's pending updates to `due`. Has no effect if there are none.
    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError>;

    /// Deletes all pending updates and watermarks of a thread. Idempotent.
    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
