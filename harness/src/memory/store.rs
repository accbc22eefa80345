//! The port of a memory store: documents, and the threads that have news.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::document::MemoryDocument;
use crate::ids::ThreadId;
use crate::runtime::runs::store::StoreError;

/// Whose memory: a user's, or what one of the user's own agents remembers of the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryScope {
    /// The user.
    pub user: String,
    /// The agent, if it is not the usual one.
    pub agent: Option<String>,
}

impl MemoryScope {
    /// The user's own.
    pub fn of_user(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            agent: None,
        }
    }
}

/// A document as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The document; its `revision` is the store's.
    pub document: MemoryDocument,
    /// Counts what the user changed: what was shown to an agent before must not be shown again.
    pub edits: i64,
}

/// A thread with news, taken by a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// Whose memory learns.
    pub scope: MemoryScope,
    /// The thread.
    pub thread: ThreadId,
    /// The last message that was learned from.
    pub watermark: Option<String>,
    /// Counts the news, so that those which come meanwhile are not lost.
    pub number: i64,
    /// Tries that failed.
    pub tries: i64,
}

/// Keeps memories. Promises: a document is changed only by who knows its revision; news survive a restart, are taken by one worker at
/// a time, and come back when the worker does not report in time.
#[async_trait]
pub trait MemoryStore: Send + Sync + std::fmt::Debug {
    /// The document of a scope; `None` where nothing is remembered.
    async fn read(&self, scope: &MemoryScope) -> Result<Option<Stored>, StoreError>;

    /// The user's own agents of which there are documents or news.
    async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError>;

    /// Writes the document, if the stored revision is the document's own (0 for none). Its revision is one more then. `false`
    /// when somebody else was first. `edited` says that the user did it.
    async fn write(
        &self,
        scope: &MemoryScope,
        document: &MemoryDocument,
        edited: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Remembers that a thread has news, to be looked at from `due` on; a later note postpones an earlier one.
    async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Takes threads whose time has come, the longest due first; they are this worker's until `until`.
    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Noted>, StoreError>;

    /// What was taken is learned up to `watermark`. News that came meanwhile stay due.
    async fn done(&self, noted: &Noted, watermark: Option<&str>) -> Result<(), StoreError>;

    /// It did not work; another try from `due` on.
    async fn again(&self, noted: &Noted, due: DateTime<Utc>) -> Result<(), StoreError>;

    /// Whoever took it does not come to it: it is due for others at once, and no try was made.
    async fn give_back(&self, noted: &Noted) -> Result<(), StoreError>;

    /// What a thread has to tell is due from `due` on, if there is anything.
    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError>;

    /// Nothing is known of the thread any more. Idempotent.
    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
