//! Long-term memory in the database.

mod nearest;
mod row;
mod search;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::items::{
    Hit, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, Reading,
};
use harness::runtime::runs::store::StoreError;
use tokio::sync::OnceCell;

use crate::connect::Database;
use crate::entity::micros;

/// Items over SQL. Meaning is compared by pgvector where Postgres has it, else here.
#[derive(Debug, Clone)]
pub struct SqlItemStore {
    db: Database,
    /// The schema of the pgvector extension, once it was looked for.
    pgvector: Arc<OnceCell<Option<String>>>,
}

impl SqlItemStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self {
            db,
            pgvector: Arc::default(),
        }
    }

    /// Lets what was read begin its life anew, as far as it has an end.
    async fn refresh(
        &self,
        user: &str,
        read: impl Iterator<Item = &row::Row>,
        reading: Reading,
    ) -> Result<(), StoreError> {
        let mortal: Vec<_> = read
            .filter(|_| reading.refresh)
            .filter_map(row::Row::mortal_place)
            .collect();
        if mortal.is_empty() {
            return Ok(());
        }
        self.db
            .writes()
            .run(
                (user.to_owned(), mortal, micros(reading.at)),
                write::refresh,
            )
            .await
    }
}

#[async_trait]
impl ItemStore for SqlItemStore {
    async fn put(&self, item: NewItem) -> Result<(), StoreError> {
        self.db.writes().create(item, write::put).await
    }

    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        reading: Reading,
    ) -> Result<Option<Item>, StoreError> {
        let Some(row) =
            search::one(self.db.reads(), user, namespace, key, micros(reading.at)).await?
        else {
            return Ok(None);
        };
        self.refresh(user, std::iter::once(&row), reading).await?;
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
        let found = match &search.nearest {
            None if search.filter.is_empty() => search::recent(db, user, search).await?,
            None => search::filtered(db, user, search).await?,
            Some(nearest) => match self.pgvector(search).await? {
                Some(schema) => {
                    nearest::in_the_database(db, user, search, nearest, &schema).await?
                }
                None => nearest::here(db, user, search, nearest).await?,
            },
        };
        self.refresh(user, found.iter().map(|(_, row)| row), search.reading)
            .await?;
        Ok(found
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
        let all = search::namespaces(self.db.reads(), user, &query.head(), micros(at)).await?;
        Ok(query.answer(all.iter().map(|text| Namespace::from_text(text))))
    }

    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        self.db.writes().release(micros(at), write::sweep).await
    }
}
