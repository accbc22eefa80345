//! Assistant store over SQL: a row for the current version of each assistant, and a row for every
//! version.

mod prepared_get;
mod row;
mod search;
mod write;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_domain::assistants::{
    Assistant, AssistantPatch, AssistantSearch, AssistantStore, AssistantVersion, CreatedAssistant,
    NewAssistant, VersionQuery,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::EntityTrait;
use uuid::Uuid;

use crate::db::connect::Database;
use crate::db::entity::assistant;
use crate::db::error::read;

/// Assistant store over SQL.
#[derive(Debug, Clone)]
pub struct SqlAssistantStore {
    db: Database,
}

impl SqlAssistantStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl AssistantStore for SqlAssistantStore {
    async fn create(&self, assistant: NewAssistant) -> Result<CreatedAssistant, StoreError> {
        let check = self.db.quota_check(assistant.user_id.as_deref()).await;
        let work = (assistant, check);
        self.db
            .writes()
            .create(work, |tx, (new, check)| {
                Box::pin(write::create(tx, new, check))
            })
            .await
    }

    async fn get(&self, id: Uuid, owner: &Owner) -> Result<Option<Assistant>, StoreError> {
        let user = owner.resolve()?;
        let user = user.as_deref();
        let prepared = |connection: &_| prepared_get::row(connection, id, user);
        let select = || search::of_user(assistant::Entity::find_by_id(id.to_string()), user);
        let row = self.db.read_one(prepared, select).await;
        read(row.and_then(|row| row.map(row::record).transpose()))
    }

    async fn get_many(&self, ids: &[Uuid], owner: &Owner) -> Result<Vec<Assistant>, StoreError> {
        search::get_many(self.db.reads(), ids, owner).await
    }

    async fn search(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError> {
        search::search(self.db.reads(), search, owner).await
    }

    async fn count(&self, search: &AssistantSearch, owner: &Owner) -> Result<u64, StoreError> {
        search::count(self.db.reads(), search, owner).await
    }

    async fn patch(
        &self,
        id: Uuid,
        patch: AssistantPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError> {
        let work = write::Change {
            id,
            user: owner.resolve()?,
            what: patch,
            at,
        };
        self.db.quota_check(work.user.as_deref()).await.size()?;
        self.db
            .writes()
            .create(work, |tx, work| Box::pin(write::patch(tx, work)))
            .await
    }

    async fn versions(
        &self,
        id: Uuid,
        query: &VersionQuery,
        owner: &Owner,
    ) -> Result<Option<Vec<AssistantVersion>>, StoreError> {
        if self.get(id, owner).await?.is_none() {
            return Ok(None);
        }
        search::versions(self.db.reads(), id, query).await.map(Some)
    }

    async fn set_latest(
        &self,
        id: Uuid,
        version: u32,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError> {
        let work = write::Change {
            id,
            user: owner.resolve()?,
            what: version,
            at,
        };
        self.db
            .writes()
            .run(work, |tx, work| Box::pin(write::set_latest(tx, work)))
            .await
    }

    async fn delete(&self, id: Uuid, owner: &Owner) -> Result<bool, StoreError> {
        let work = (id, owner.resolve()?);
        self.db
            .writes()
            .release(work, |tx, (id, user)| {
                Box::pin(write::delete(tx, *id, user.as_deref()))
            })
            .await
    }
}
