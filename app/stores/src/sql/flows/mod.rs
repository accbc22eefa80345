//! Flow store over SQL: a row for the current version of each flow, a row for every version, and
//! one for every content.

mod prepared_find;
mod row;
mod write;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::flows::{
    DeletedFlow, FlowContent, FlowPage, FlowQuota, FlowRecord, FlowStore, FlowVersionRecord,
    FlowWrite, SaveError, StoredFlow,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, Order, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::db::connect::Database;
use crate::db::entity::{flow, flow_content, flow_version, micros, moment, plain};
use crate::db::error::read;

/// Flow store over SQL.
#[derive(Debug, Clone)]
pub struct SqlFlowStore {
    db: Database,
}

impl SqlFlowStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    async fn row(&self, user: &str, slug: &str) -> Result<Option<flow::Model>, StoreError> {
        let key = (plain(user), plain(slug));
        let prepared = |connection: &_| prepared_find::row(connection, &key);
        let select = || flow::Entity::find_by_id(key.clone());
        read(self.db.read_one(prepared, select).await)
    }
}

#[async_trait]
impl FlowStore for SqlFlowStore {
    async fn save(
        &self,
        user: &str,
        writes: Vec<FlowWrite>,
        quota: FlowQuota,
        at: DateTime<Utc>,
    ) -> Result<Vec<FlowRecord>, SaveError> {
        let size = self.db.quota_check(Some(user)).await.size();
        size.map_err(StoreError::QuotaExceeded)?;
        let batch = write::Batch {
            user: plain(user),
            writes: writes.into_iter().map(write::PreparedWrite::of).collect(),
            quota,
            at,
        };
        self.db
            .writes()
            .create(batch, |tx, batch| Box::pin(write::save(tx, batch)))
            .await
    }

    async fn get(
        &self,
        user: &str,
        slug: &str,
        version: Option<u32>,
    ) -> Result<Option<StoredFlow>, StoreError> {
        let Some(flow) = self.row(user, slug).await? else {
            return Ok(None);
        };
        let number = version.map_or(flow.version, i64::from);
        let key = (flow.user_id, flow.slug, number);
        let stored = flow_version::Entity::find_by_id(key)
            .one(self.db.reads())
            .await;
        let Some(version) = read(stored)?.map(row::version) else {
            return Ok(None);
        };
        let version = read(version)?;
        // Sweeps remove a content long after its last version, so the two reads need no transaction.
        let content = self.content(user, &version.content_hash).await?;
        Ok(content.map(|content| StoredFlow {
            created_at: moment(flow.created_at),
            version,
            content,
        }))
    }

    async fn find(&self, user: &str, slug: &str) -> Result<Option<FlowRecord>, StoreError> {
        read(self.row(user, slug).await?.map(row::record).transpose())
    }

    async fn list(&self, user: &str, page: FlowPage) -> Result<Vec<FlowRecord>, StoreError> {
        // Sorts by bytes, independent of the database's locale.
        let slug = match self.db.reads().get_database_backend() {
            DbBackend::Postgres => {
                Expr::cust_with_expr("$1 COLLATE \"C\"", Expr::col(flow::Column::Slug))
            }
            _ => SimpleExpr::from(Expr::col(flow::Column::Slug)),
        };
        let rows = flow::Entity::find()
            .filter(flow::Column::UserId.eq(plain(user)))
            .order_by(slug, Order::Asc)
            .limit(page.limit as u64)
            .offset(page.offset as u64)
            .all(self.db.reads())
            .await;
        let records = read(rows)?.into_iter().map(row::record);
        Ok(records.filter_map(row::readable).collect())
    }

    async fn count(&self, user: &str) -> Result<u64, StoreError> {
        let of_user = flow::Entity::find().filter(flow::Column::UserId.eq(plain(user)));
        read(of_user.count(self.db.reads()).await)
    }

    async fn versions(
        &self,
        user: &str,
        slug: &str,
    ) -> Result<Option<Vec<FlowVersionRecord>>, StoreError> {
        if self.row(user, slug).await?.is_none() {
            return Ok(None);
        }
        let rows = flow_version::Entity::find()
            .filter(flow_version::Column::UserId.eq(plain(user)))
            .filter(flow_version::Column::Slug.eq(plain(slug)))
            .order_by_desc(flow_version::Column::Version)
            .all(self.db.reads())
            .await;
        let versions = read(rows)?.into_iter().map(row::version);
        Ok(Some(versions.filter_map(row::readable).collect()))
    }

    async fn delete(
        &self,
        user: &str,
        slug: &str,
        expected: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<DeletedFlow, StoreError> {
        let deletion = write::Deletion {
            user: plain(user),
            slug: plain(slug),
            expected: expected.map(str::to_owned),
            at,
        };
        self.db
            .writes()
            .release(deletion, |tx, deletion| {
                Box::pin(write::delete(tx, deletion))
            })
            .await
    }

    async fn content(&self, owner: &str, hash: &str) -> Result<Option<FlowContent>, StoreError> {
        let row = flow_content::Entity::find_by_id((plain(owner), plain(hash)))
            .one(self.db.reads())
            .await;
        let content = read(row)?.map(|row| row::content(hash, &row.content_json));
        read(content.transpose())
    }

    async fn store_content(
        &self,
        owner: &str,
        content: FlowContent,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let row = write::content_row(plain(owner), &content, Some(micros(at)));
        self.db
            .writes()
            .run(row, |tx, row| Box::pin(write::store_content(tx, row)))
            .await
    }

    async fn sweep(&self, before: DateTime<Utc>, limit: usize) -> Result<usize, StoreError> {
        let work = (micros(before), i64::try_from(limit).unwrap_or(i64::MAX));
        self.db
            .writes()
            .release(work, |tx, work| Box::pin(write::sweep(tx, *work)))
            .await
    }
}
