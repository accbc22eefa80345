//! Long-term memory: JSON items under a namespace and a key, per user, found by place, by content, or by meaning.

mod best;
mod fields;
mod filter;
mod library;
mod memory;
mod namespace;
mod similarity;

pub use best::Best;
pub use fields::{FieldPath, MOST_TEXTS};
pub use filter::{Filter, UnknownOperator};
pub use library::{Indexing, ItemError, Items, MeaningIndex, PutRequest, SearchRequest, TtlPolicy};
pub use memory::MemoryItemStore;
pub use namespace::{InvalidPlace, MOST_PLACE_BYTES, Namespace, NamespaceQuery, checked_key};
pub use similarity::cosine;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use harness::runtime::runs::store::StoreError;
use serde_json::{Map, Value};

/// What is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where it stands.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What it says.
    pub value: Map<String, Value>,
    /// When its place was first taken.
    pub created_at: DateTime<Utc>,
    /// When it was last written.
    pub updated_at: DateTime<Utc>,
}

/// An item to be written in the place of whatever is there.
#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    /// Whose it is.
    pub user_id: String,
    /// Where it stands.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What it says.
    pub value: Map<String, Value>,
    /// What parts of it mean, each as a vector.
    pub vectors: Vec<Vec<f32>>,
    /// How long it lives after the last write, or read that refreshes it; for ever without.
    pub ttl: Option<TimeDelta>,
    /// Now.
    pub at: DateTime<Utc>,
}

/// How a read treats the time of an item's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Now: what ended before is not there any more.
    pub at: DateTime<Utc>,
    /// Whether what is read begins its life anew.
    pub refresh: bool,
}

/// Which items, in which part of the order.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemSearch {
    /// Only those in this namespace and below it.
    pub prefix: Namespace,
    /// Only those whose value fits.
    pub filter: Filter,
    /// The nearest to this meaning first, and only those that have one; without it the last written first.
    pub nearest: Option<Vec<f32>>,
    /// At most so many.
    pub limit: usize,
    /// After so many others.
    pub offset: usize,
    /// How the time of their lives is treated.
    pub reading: Reading,
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The item.
    pub item: Item,
    /// The cosine of its nearest vector and the wanted one.
    pub score: Option<f64>,
}

/// Keeps items. Every call means the items of one user; other users' are not touched by it.
#[async_trait]
pub trait ItemStore: Send + Sync + std::fmt::Debug {
    /// Writes the item whole. One that is replaced leaves nothing but the time it was made.
    async fn put(&self, item: NewItem) -> Result<(), StoreError>;
    /// The item in a place.
    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        reading: Reading,
    ) -> Result<Option<Item>, StoreError>;
    /// Removes the item in a place, if there is one.
    async fn delete(&self, user: &str, namespace: &Namespace, key: &str) -> Result<(), StoreError>;
    /// The items that fit, best first; ties in the order of their places.
    async fn search(&self, user: &str, search: &ItemSearch) -> Result<Vec<Hit>, StoreError>;
    /// The namespaces that hold items, in the order of their labels.
    async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
        at: DateTime<Utc>,
    ) -> Result<Vec<Namespace>, StoreError>;
    /// Removes, of all users, what ended before `at`. Gives the number of items.
    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError>;
}
