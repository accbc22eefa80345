//! Operations on items for callers: applies lifetime and embedding rules on top of a store.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use deerflow_core::clock::Clock;
use deerflow_core::{embedder::Embedder, model_error::ModelError};
use deerflow_runtime::runs::store::StoreError;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    FieldPath, Filter, Hit, Item, ItemSearch, ItemStore, MAX_TEXTS, Namespace, NamespaceQuery,
    NewItem, ReadOptions,
};

/// Default lifetime of items, and its extension by reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlPolicy {
    /// Lifetime of items written without one; unlimited if absent.
    pub default: Option<TimeDelta>,
    /// Default for reads that do not specify `refresh`.
    pub refresh_on_read: bool,
    /// Interval between deletions of expired items.
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

/// Embedding model and default fields of semantic search.
#[derive(Debug)]
pub struct EmbeddingIndex {
    /// Embedding model.
    pub embedder: Arc<dyn Embedder>,
    /// Fields to embed when a request names none.
    pub fields: Vec<FieldPath>,
}

/// Fields of a value to embed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Indexing {
    /// The fields of the index.
    #[default]
    AsConfigured,
    /// None; semantic search does not find the item.
    Off,
    /// These fields.
    Fields(Vec<String>),
}

/// Item to write.
#[derive(Debug, Clone)]
pub struct PutRequest {
    /// Namespace of the item.
    pub namespace: Namespace,
    /// Key within the namespace.
    pub key: String,
    /// JSON value.
    pub value: Map<String, Value>,
    /// Lifetime; the policy's default if absent.
    pub ttl: Option<TimeDelta>,
    /// Fields to embed.
    pub indexing: Indexing,
}

/// Item search.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// Searches this namespace and those below it.
    pub prefix: Namespace,
    /// Filter on the value.
    pub filter: Filter,
    /// Embedded query of a semantic search, as [`ItemService::embed_query`] returns it.
    pub nearest: Option<Vec<f32>>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
    /// `true` if the search restarts the lifetime of its results; the policy's default if absent.
    pub refresh: Option<bool>,
}

/// Reason why items could not be read or written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedding model failed.
    #[error("the embedding model failed: {0}")]
    Embedding(#[from] ModelError),
    /// The item has more texts to embed than the index allows.
    #[error("an item has {0} texts to index, at most {MAX_TEXTS} are possible")]
    TooManyTexts(usize),
}

/// Items of all users, under the rules of one installation.
#[derive(Debug)]
pub struct ItemService {
    store: Arc<dyn ItemStore>,
    index: Option<EmbeddingIndex>,
    ttl: TtlPolicy,
    clock: Arc<dyn Clock>,
}

impl ItemService {
    /// Creates a service over `store`.
    pub fn new(
        store: Arc<dyn ItemStore>,
        index: Option<EmbeddingIndex>,
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

    /// Writes an item. Computes its embeddings first; if that fails, nothing is written.
    pub async fn put(&self, user: &str, request: PutRequest) -> Result<(), ItemError> {
        let vectors = self.embed_texts(&request).await?;
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

    /// Returns one item.
    pub async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, ItemError> {
        Ok(self
            .store
            .get(user, namespace, key, self.read_options(refresh))
            .await?)
    }

    /// Deletes an item if it exists.
    pub async fn delete(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
    ) -> Result<(), ItemError> {
        Ok(self.store.delete(user, namespace, key).await?)
    }

    /// Embeds the query of a semantic search, for all parts of one list. Returns `None` for an empty
    /// query, and without an index.
    ///
    /// # Errors
    /// [`ItemError::Embedding`].
    pub async fn embed_query(&self, query: Option<String>) -> Result<Option<Vec<f32>>, ItemError> {
        match (query.filter(|query| !query.trim().is_empty()), &self.index) {
            (Some(query), Some(index)) => Ok(index.embedder.embed(&[query]).await?.pop()),
            _ => Ok(None),
        }
    }

    /// Returns the items that match: most similar first if there is an embedded query, else the most
    /// recently written first.
    pub async fn search(&self, user: &str, request: SearchRequest) -> Result<Vec<Hit>, ItemError> {
        let SearchRequest {
            prefix,
            filter,
            nearest,
            limit,
            offset,
            refresh,
        } = request;
        let search = ItemSearch {
            prefix,
            filter,
            nearest,
            limit,
            offset,
            read_options: self.read_options(refresh),
        };
        Ok(self.store.search(user, &search).await?)
    }

    /// Returns the namespaces that contain items.
    pub async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
    ) -> Result<Vec<Namespace>, ItemError> {
        Ok(self.store.namespaces(user, query, self.clock.now()).await?)
    }

    /// Deletes expired items at intervals until `stop`.
    pub async fn sweep_loop(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.ttl.sweep_every) => {}
            }
            match self.store.sweep(self.clock.now()).await {
                Ok(0) => {}
                Ok(items) => tracing::info!(items, "deleted expired items"),
                Err(error) => {
                    tracing::warn!(%error, "cannot delete expired items")
                }
            }
        }
    }

    fn read_options(&self, refresh: Option<bool>) -> ReadOptions {
        ReadOptions {
            at: self.clock.now(),
            refresh: refresh.unwrap_or(self.ttl.refresh_on_read),
        }
    }

    async fn embed_texts(&self, request: &PutRequest) -> Result<Vec<Vec<f32>>, ItemError> {
        let Some(index) = &self.index else {
            return Ok(Vec::new());
        };
        let texts = |fields: &[FieldPath]| {
            fields
                .iter()
                .flat_map(|field| field.texts(&request.value))
                .take(MAX_TEXTS + 1)
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
            many if many > MAX_TEXTS => Err(ItemError::TooManyTexts(many)),
            _ => Ok(index.embedder.embed(&texts).await?),
        }
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
