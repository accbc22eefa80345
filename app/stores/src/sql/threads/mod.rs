//! Thread store over SQL: thread rows, and deletion of all data of a thread.

mod branch;
mod contents;
mod create_function;
mod facts;
mod filters;
mod order;
mod prepared_create;
mod prepared_get;
mod row;
mod search;
mod storage;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;
use deerflow_domain::branches::{BranchStore, NewBranch};
use deerflow_domain::threads::{
    Created, Deleted, NewThread, SweptThreads, ThreadContent, ThreadPatch, ThreadRecord,
    ThreadSearch, ThreadStorage, ThreadStore,
};
use deerflow_runtime::runs::store::{RunEventStore, StoreError};
use sea_orm::EntityTrait;

use crate::db::connect::Database;
use crate::db::entity::thread;
use crate::db::error::read;
use crate::db::space::WriteClass;
use crate::db::tx::FastWork;

/// Thread store over SQL.
#[derive(Debug, Clone)]
pub struct SqlThreadStore {
    db: Database,
    journal: Option<Arc<dyn RunEventStore>>,
}

impl SqlThreadStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db, journal: None }
    }

    /// Adds an event store outside the database; its events are deleted with their thread.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn RunEventStore>) -> Self {
        self.journal = Some(journal);
        self
    }
}

#[async_trait]
impl ThreadStore for SqlThreadStore {
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError> {
        let check = self.db.quota_check(thread.user_id.as_deref()).await;
        match self
            .db
            .writes()
            .run_fast(
                WriteClass::Creation,
                (thread, check),
                |tx, (thread, check)| Box::pin(write::create(tx, thread, check)),
                Some(FastWork {
                    sqlite: prepared_create::create,
                    postgres: Some(create_function::create),
                }),
            )
            .await
        {
            Ok(row) => Ok(row),
            Err(write::CreateRefusal::Found(row)) => Ok(*row),
            Err(write::CreateRefusal::Failed(error)) => Err(error),
        }
    }

    async fn get(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let user = owner.resolve()?;
        let user = user.as_deref();
        let prepared = |connection: &_| prepared_get::row(connection, thread, user);
        let select = || search::of_user(thread::Entity::find_by_id(thread.as_str()), user);
        let row = self.db.read_one(prepared, select).await;
        read(row.and_then(|row| row.map(row::record).transpose()))
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

    async fn storage(&self, thread: &ThreadId) -> Result<ThreadStorage, StoreError> {
        storage::storage(self.db.reads(), thread).await
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
        if let (Deleted::Removed, Some(journal)) = (deleted, &self.journal) {
            journal.delete_thread(thread).await?;
        }
        Ok(deleted)
    }

    async fn delete_past_checkpoints(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Deleted, StoreError> {
        let work = (thread.clone(), owner.resolve()?);
        self.db
            .writes()
            .release(work, |tx, (thread, user)| {
                Box::pin(write::forget(tx, thread, user.as_deref()))
            })
            .await
    }

    async fn sweep(&self, at: DateTime<Utc>, limit: usize) -> Result<SweptThreads, StoreError> {
        let swept = self
            .db
            .writes()
            .release((at, limit), |tx, (at, limit)| {
                Box::pin(write::sweep(tx, *at, *limit))
            })
            .await?;
        if let Some(journal) = &self.journal {
            for thread in &swept.deleted {
                // No later sweep finds these events, because the rows are deleted: the failure is
                // only logged.
                if let Err(error) = journal.delete_thread(&thread.thread_id).await {
                    tracing::error!(thread_id = %thread.thread_id, %error, "cannot delete the events of a deleted thread");
                }
            }
        }
        Ok(swept)
    }
}

#[async_trait]
impl BranchStore for SqlThreadStore {
    async fn branch(&self, branch: NewBranch) -> Result<Option<ThreadRecord>, StoreError> {
        let thread = branch.thread.thread_id.clone();
        let user = branch.thread.user_id.as_deref();
        let check = self.db.quota_check(user).await;
        check.size()?;
        let journal = self.journal.clone().filter(|_| !branch.events.is_empty());
        // Events of a thread without a row are invisible.
        if let Some(journal) = &journal {
            journal.append(branch.events.clone()).await?;
        }
        let work = branch::BranchWork {
            with_events: self.journal.is_none(),
            branch,
            check,
        };
        let created = self
            .db
            .writes()
            .create(work, |tx, work| Box::pin(branch::branch(tx, work)))
            .await;
        // An error does not prove that the transaction was rolled back: then the events stay.
        if let (Ok(None), Some(journal)) = (&created, journal) {
            journal.delete_thread(&thread).await?;
        }
        created
    }
}
