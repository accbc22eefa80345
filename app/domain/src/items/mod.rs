//! Item store (LangGraph Store): JSON items per user under a namespace and a key, found by key, by
//! filter or by semantic search.

mod fields;
mod filter;
mod in_memory;
mod namespace;
mod service;
mod similarity;
mod top_k;

pub use fields::{FieldPath, MAX_TEXTS};
pub use filter::{Filter, UnknownOperator};
pub use in_memory::InMemoryItemStore;
pub use namespace::{InvalidItemPath, MAX_PATH_BYTES, Namespace, NamespaceQuery, validate_key};
pub use service::{
    EmbeddingIndex, Indexing, ItemError, ItemService, PutRequest, SearchRequest, TtlPolicy,
};
pub use similarity::cosine;
pub use top_k::TopK;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_runtime::runs::store::StoreError;
use serde_json::{Map, Value};

/// Stored item.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Namespace of the item.
    pub namespace: Namespace,
    /// Key within the namespace.
    pub key: String,
    /// JSON value.
    pub value: Map<String, Value>,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the last write.
    pub updated_at: DateTime<Utc>,
}

/// Item to write, replacing an existing one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    /// Owner.
    pub user_id: String,
    /// Namespace of the item.
    pub namespace: Namespace,
    /// Key within the namespace.
    pub key: String,
    /// JSON value.
    pub value: Map<String, Value>,
    /// Embeddings of the selected texts.
    pub vectors: Vec<Vec<f32>>,
    /// Lifetime after the last write or refreshing read; unlimited if absent.
    pub ttl: Option<TimeDelta>,
    /// Current time.
    pub at: DateTime<Utc>,
}

/// Expiry handling of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Current time; items that expired before it are not returned.
    pub at: DateTime<Utc>,
    /// `true` if the read restarts the lifetime of the items it returns.
    pub refresh: bool,
}

/// Filters, order and page of an item search.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemSearch {
    /// Searches this namespace and those below it.
    pub prefix: Namespace,
    /// Returns only items whose value passes this filter.
    pub filter: Filter,
    /// Query embedding: returns only items with embeddings, most similar first. Without it, the
    /// most recently written come first.
    pub nearest: Option<Vec<f32>>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
    /// Expiry handling.
    pub read_options: ReadOptions,
}

/// Search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Matching item.
    pub item: Item,
    /// Cosine similarity of the query and the item's best vector.
    pub score: Option<f64>,
}

/// Stores items. Every call applies to the items of one user.
#[async_trait]
pub trait ItemStore: Send + Sync + std::fmt::Debug {
    /// Writes a whole item. A replaced item keeps only its creation time.
    async fn put(&self, item: NewItem) -> Result<(), StoreError>;
    /// Returns one item.
    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        read_options: ReadOptions,
    ) -> Result<Option<Item>, StoreError>;
    /// Deletes an item if it exists.
    async fn delete(&self, user: &str, namespace: &Namespace, key: &str) -> Result<(), StoreError>;
    /// Returns the items that match, best first; ties are ordered by namespace and key.
    async fn search(&self, user: &str, search: &ItemSearch) -> Result<Vec<Hit>, StoreError>;
    /// Returns the namespaces that contain items, ordered by their labels.
    async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
        at: DateTime<Utc>,
    ) -> Result<Vec<Namespace>, StoreError>;
    /// Deletes the items of all users that expired before `at`. Returns their number.
    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError>;
}
