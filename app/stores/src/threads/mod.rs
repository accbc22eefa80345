//! Threads in the database: their rows, and all that goes with them.

mod contents;
mod facts;
mod row;
mod search;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::threads::{
    Created, Deleted, NewThread, Swept, ThreadContent, ThreadPatch, ThreadRecord, ThreadSearch,
    ThreadStore,
};
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{RunEventStore, StoreError};
use sea_orm::EntityTrait;

use crate::connect::Database;
use crate::entity::thread;
use crate::error::read;

pub(crate) use facts::index_all;
pub(crate) use row::keeps_latest;
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
        match self
            .db
            .writes()
            .create(thread, |tx, thread| Box::pin(write::create(tx, thread)))
            .await
        {
            Ok(found) => Ok(found),
            Err(write::NotMade::Found(found)) => Ok(*found),
            Err(write::NotMade::Failed(error)) => Err(error),
        }
    }

    async fn get(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let found = search::owned(thread::Entity::find_by_id(thread.as_str()), owner)?
            .one(self.db.reads())
            .await;
        read(found.and_then(|row| row.map(row::record).transpose()))
    }

    async fn search(
        &self,
        search: &ThreadSearch,
        owner: &Owner,
    ) -> Result<Vec<ThreadRecord>, StoreError> {
        search::search(self.db.reads(), search, owner).await
    }

    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError> {
        search::count(self.db.reads(), search, owner).await
    }

    async fn contents(
        &self,
        threads: &[ThreadId],
    ) -> Result<HashMap<ThreadId, ThreadContent>, StoreError> {
        contents::contents(self.db.reads(), threads).await
    }

    async fn patch(
        &self,
        thread: &ThreadId,
        patch: ThreadPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let work = write::Patch {
            thread: thread.clone(),
            user: owner.resolve()?,
            patch,
            at,
        };
        self.db
            .writes()
            .create(work, |tx, work| Box::pin(write::patch(tx, work)))
            .await
    }

    async fn delete(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError> {
        let work = (thread.clone(), owner.resolve()?);
        let deleted = self
            .db
            .writes()
            .release(work, |tx, (thread, user)| {
                Box::pin(write::delete(tx, thread, user.as_deref()))
            })
            .await?;
        if let (Deleted::Done, Some(journal)) = (deleted, &self.journal) {
            journal.delete_thread(thread).await?;
        }
        Ok(deleted)
    }

    async fn forget_past(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError> {
        let work = (thread.clone(), owner.resolve()?);
        self.db
            .writes()
            .release(work, |tx, (thread, user)| {
                Box::pin(write::forget(tx, thread, user.as_deref()))
            })
            .await
    }

    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<Swept, StoreError> {
        let swept = self
            .db
            .writes()
            .release((at, most), |tx, (at, most)| {
                Box::pin(write::sweep(tx, *at, *most))
            })
            .await?;
        if let Some(journal) = &self.journal {
            for thread in &swept.gone {
                // The rows are gone, so no later sweep would find these: the log has to.
                if let Err(error) = journal.delete_thread(&thread.thread_id).await {
                    tracing::error!(thread_id = %thread.thread_id, %error, "events of a deleted thread are left behind");
                }
            }
        }
        Ok(swept)
    }
}
