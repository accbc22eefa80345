//! What callers do with items: the rules of the time they live and of what they mean, over a store.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use harness::clock::Clock;
use harness::models::{Embedder, ModelError};
use harness::runtime::runs::store::StoreError;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    FieldPath, Filter, Hit, Item, ItemSearch, ItemStore, MOST_TEXTS, Namespace, NamespaceQuery,
    NewItem, Reading,
};

/// How long items live when nobody says, and whether reading lengthens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlPolicy {
    /// The life of an item that is written without one; for ever without.
    pub default: Option<TimeDelta>,
    /// Whether a read that does not say refreshes what it reads.
    pub refresh_on_read: bool,
    /// How often what has ended is removed.
    pub sweep_every: Duration,
}

impl Default for TtlPolicy {
    fn default() -> Self {
        Self {
            default: None,
            refresh_on_read: true,
            sweep_every: Duration::from_secs(3600),
        }
    }
}

/// What makes items findable by meaning.
#[derive(Debug)]
pub struct MeaningIndex {
    /// Who knows meanings.
    pub embedder: Arc<dyn Embedder>,
    /// Which parts of a value count when nobody says.
    pub fields: Vec<FieldPath>,
}

/// Which parts of a value count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Those of the index.
    #[default]
    AsConfigured,
    /// None: it is not found by meaning.
    Off,
    /// These.
    Fields(Vec<String>),
}

/// An item to be written.
#[derive(Debug, Clone)]
pub struct PutRequest {
    /// Where it stands.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What it says.
    pub value: Map<String, Value>,
    /// How long it lives; the policy's time without.
    pub ttl: Option<TimeDelta>,
    /// Which parts of it count.
    pub indexing: Indexing,
}

/// Items to be found.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// In this namespace and below it.
    pub prefix: Namespace,
    /// Whose value fits.
    pub filter: Filter,
    /// Nearest to what this means. Without an index it means nothing.
    pub query: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// After so many others.
    pub offset: usize,
    /// Whether what is found begins its life anew; the policy's word without.
    pub refresh: Option<bool>,
}

/// Why items could not be read or written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing could be found out about a meaning.
    #[error("the embedding model failed: {0}")]
    Embedding(#[from] ModelError),
    /// More parts of one item are to count than an index takes.
    #[error("an item has {0} texts to index, at most {MOST_TEXTS} are possible")]
    TooManyTexts(usize),
}

/// The items of all users, under the rules of one installation.
#[derive(Debug)]
pub struct Items {
    store: Arc<dyn ItemStore>,
    index: Option<MeaningIndex>,
    ttl: TtlPolicy,
    clock: Arc<dyn Clock>,
}

impl Items {
    /// Items in `store`.
    pub fn new(
        store: Arc<dyn ItemStore>,
        index: Option<MeaningIndex>,
        ttl: TtlPolicy,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            index,
            ttl,
            clock,
        }
    }

    /// Writes an item. Its meaning is found out first: when that fails, nothing is written.
    pub async fn put(&self, user: &str, request: PutRequest) -> Result<(), ItemError> {
        let vectors = self.meanings(&request).await?;
        let PutRequest {
            namespace,
            key,
            value,
            ttl,
            ..
        } = request;
        let (ttl, at) = (ttl.or(self.ttl.default), self.clock.now());
        Ok(self
            .store
            .put(NewItem {
                user_id: user.to_owned(),
                namespace,
                key,
                value,
                vectors,
                ttl,
                at,
            })
            .await?)
    }

    /// The item in a place.
    pub async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, ItemError> {
        Ok(self
            .store
            .get(user, namespace, key, self.reading(refresh))
            .await?)
    }

    /// Removes an item, if it is there.
    pub async fn delete(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
    ) -> Result<(), ItemError> {
        Ok(self.store.delete(user, namespace, key).await?)
    }

    /// The items that fit: the nearest first when a meaning is asked for and known, else the last written first.
    pub async fn search(&self, user: &str, request: SearchRequest) -> Result<Vec<Hit>, ItemError> {
        let SearchRequest {
            prefix,
            filter,
            query,
            limit,
            offset,
            refresh,
        } = request;
        let nearest = match (query.filter(|query| !query.trim().is_empty()), &self.index) {
            (Some(query), Some(index)) => index.embedder.embed(&[query]).await?.pop(),
            _ => None,
        };
        let search = ItemSearch {
            prefix,
            filter,
            nearest,
            limit,
            offset,
            reading: self.reading(refresh),
        };
        Ok(self.store.search(user, &search).await?)
    }

    /// The namespaces that hold items.
    pub async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
    ) -> Result<Vec<Namespace>, ItemError> {
        Ok(self.store.namespaces(user, query, self.clock.now()).await?)
    }

    /// Removes what has ended, now and then, until `stop`.
    pub async fn keep_swept(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.ttl.sweep_every) => {}
            }
            match self.store.sweep(self.clock.now()).await {
                Ok(0) => {}
                Ok(items) => tracing::info!(items, "items at the end of their life are removed"),
                Err(error) => {
                    tracing::warn!(%error, "items at the end of their life could not be removed")
                }
            }
        }
    }

    fn reading(&self, refresh: Option<bool>) -> Reading {
        Reading {
            at: self.clock.now(),
            refresh: refresh.unwrap_or(self.ttl.refresh_on_read),
        }
    }

    async fn meanings(&self, request: &PutRequest) -> Result<Vec<Vec<f32>>, ItemError> {
        let Some(index) = &self.index else {
            return Ok(Vec::new());
        };
        let texts = |fields: &[FieldPath]| {
            fields
                .iter()
                .flat_map(|field| field.texts(&request.value))
                .take(MOST_TEXTS + 1)
                .collect::<Vec<_>>()
        };
        let texts = match &request.indexing {
            Indexing::Off => Vec::new(),
            Indexing::AsConfigured => texts(&index.fields),
            Indexing::Fields(fields) => texts(
                &fields
                    .iter()
                    .map(|field| FieldPath::parse(field))
                    .collect::<Vec<_>>(),
            ),
        };
        match texts.len() {
            0 => Ok(Vec::new()),
            many if many > MOST_TEXTS => Err(ItemError::TooManyTexts(many)),
            _ => Ok(index.embedder.embed(&texts).await?),
        }
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
