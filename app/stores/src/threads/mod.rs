//! Threads in the database: their rows, and all that goes with them.

mod row;
mod search;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::threads::{Created, Deleted, NewThread, ThreadPatch, ThreadRecord, ThreadSearch, ThreadStore};
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{RunEventStore, StoreError};
use sea_orm::{EntityTrait, PaginatorTrait, QuerySelect};

use crate::connect::Database;
use crate::entity::thread;
use crate::error::read;

pub(crate) use write::locked;

/// Threads over SQL.
#[derive(Debug, Clone)]
pub struct SqlThreadStore {
    db: Database,
    journal: Option<Arc<dyn RunEventStore>>,
}

impl SqlThreadStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db, journal: None }
    }

    /// The same, for when events are kept outside the database: they go with their thread.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn RunEventStore>) -> Self {
        self.journal = Some(journal);
        self
    }
}

#[async_trait]
impl ThreadStore for SqlThreadStore {
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError> {
        self.db.writes().run(thread, |tx, thread| Box::pin(write::create(tx, thread))).await
    }

    async fn get(&self, thread: &ThreadId, owner: &Owner) -> Result<Option<ThreadRecord>, StoreError> {
        let found = search::owned(thread::Entity::find_by_id(thread.as_str()), owner)?.one(self.db.reads()).await;
        read(found.and_then(|row| row.map(row::record).transpose()))
    }

    async fn search(&self, search: &ThreadSearch, owner: &Owner) -> Result<Vec<ThreadRecord>, StoreError> {
        let select = search::ordered(search::matching(search, owner, self.db.reads().get_database_backend())?, search);
        read(select.limit(search.limit as u64).offset(search.offset as u64).all(self.db.reads()).await).map(row::records)
    }

    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError> {
        read(search::matching(search, owner, self.db.reads().get_database_backend())?.count(self.db.reads()).await)
    }

    async fn patch(
        &self,
        thread: &ThreadId,
        patch: ThreadPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let work = write::Patch { thread: thread.clone(), user: owner.resolve()?, patch, at };
        self.db.writes().run(work, |tx, work| Box::pin(write::patch(tx, work))).await
    }

    async fn delete(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError> {
        let work = (thread.clone(), owner.resolve()?);
        let deleted = self.db.writes().run(work, |tx, (thread, user)| Box::pin(write::delete(tx, thread, user.as_deref()))).await?;
        if let (Deleted::Done, Some(journal)) = (deleted, &self.journal) {
            journal.delete_thread(thread).await?;
        }
        Ok(deleted)
    }
}
