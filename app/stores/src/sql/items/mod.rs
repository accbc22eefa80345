//! Item store over SQL (LangGraph Store).

mod nearest;
mod row;
mod search;
mod vector;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::items::{
    Hit, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, ReadOptions,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::DbBackend;
use tokio::sync::OnceCell;

use crate::db::connect::Database;
use crate::db::entity::micros;

/// Item store over SQL. Vectors are compared by pgvector if Postgres has it, else in this process.
#[derive(Debug, Clone)]
pub struct SqlItemStore {
    db: Database,
    /// Schema of the pgvector extension, looked up on first use.
    pgvector: Arc<OnceCell<Option<String>>>,
}

impl SqlItemStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self {
            db,
            pgvector: Arc::default(),
        }
    }

    /// Returns the schema of pgvector, for SQL, if the database has it and it can answer this
    /// search: it supports no filters.
    async fn pgvector(&self, search: &ItemSearch) -> Result<Option<String>, StoreError> {
        let db = self.db.reads();
        if db.get_database_backend() != DbBackend::Postgres || !search.filter.is_empty() {
            return Ok(None);
        }
        let schema = self
            .pgvector
            .get_or_try_init(async || nearest::pgvector_schema(db).await)
            .await?;
        Ok(schema.as_ref().map(|schema| schema.replace('"', "\"\"")))
    }

    /// Restarts the time to live of the items that were read, if they have one.
    async fn refresh(
        &self,
        user: &str,
        read: impl Iterator<Item = &row::Row>,
        read_options: ReadOptions,
    ) -> Result<(), StoreError> {
        let expiring: Vec<_> = read
            .filter(|_| read_options.refresh)
            .filter_map(row::Row::expiring_key)
            .collect();
        if expiring.is_empty() {
            return Ok(());
        }
        self.db
            .writes()
            .run(
                (user.to_owned(), expiring, micros(read_options.at)),
                write::refresh,
            )
            .await
    }
}

#[async_trait]
impl ItemStore for SqlItemStore {
    async fn put(&self, item: NewItem) -> Result<(), StoreError> {
        let check = self.db.quota_check(Some(&item.user_id)).await;
        check.size()?;
        let work = (item, check);
        self.db.writes().create(work, write::put).await
    }

    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        read_options: ReadOptions,
    ) -> Result<Option<Item>, StoreError> {
        let Some(row) = search::get_row(
            self.db.reads(),
            user,
            namespace,
            key,
            micros(read_options.at),
        )
        .await?
        else {
            return Ok(None);
        };
        self.refresh(user, std::iter::once(&row), read_options)
            .await?;
        Ok(Some(row.item()?))
    }

    async fn delete(&self, user: &str, namespace: &Namespace, key: &str) -> Result<(), StoreError> {
        self.db
            .writes()
            .release(
                [user.to_owned(), namespace.to_text(), key.to_owned()],
                write::delete,
            )
            .await
    }

    async fn search(&self, user: &str, search: &ItemSearch) -> Result<Vec<Hit>, StoreError> {
        let db = self.db.reads();
        let rows = match &search.nearest {
            None if search.filter.is_empty() => search::last_updated(db, user, search).await?,
            None => search::filtered(db, user, search).await?,
            Some(nearest) => match self.pgvector(search).await? {
                Some(schema) => {
                    nearest::in_the_database(db, user, search, nearest, &schema).await?
                }
                None => nearest::in_process(db, user, search, nearest).await?,
            },
        };
        self.refresh(user, rows.iter().map(|(_, row)| row), search.read_options)
            .await?;
        Ok(rows
            .into_iter()
            .filter_map(|(score, row)| {
                Some(Hit {
                    item: row.readable()?,
                    score,
                })
            })
            .collect())
    }

    async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
        at: DateTime<Utc>,
    ) -> Result<Vec<Namespace>, StoreError> {
        let all =
            search::namespaces(self.db.reads(), user, &query.common_prefix(), micros(at)).await?;
        Ok(query.apply(all.iter().map(|text| Namespace::from_text(text))))
    }

    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        self.db.writes().release(micros(at), write::sweep).await
    }
}
