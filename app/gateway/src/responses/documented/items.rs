//! Items of the store.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::system::Error;

/// An item of the store.
#[derive(Debug, ToSchema)]
pub struct Item {
    /// Labels of the namespace, outermost first.
    pub namespace: Vec<String>,
    /// Key of the item.
    pub key: String,
    /// Value of the item.
    #[schema(value_type = Object)]
    pub value: Map<String, Value>,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
}

/// A result of a search.
#[derive(Debug, ToSchema)]
pub struct ItemHit {
    /// Labels of the namespace, outermost first.
    pub namespace: Vec<String>,
    /// Key of the item.
    pub key: String,
    /// Value of the item.
    #[schema(value_type = Object)]
    pub value: Map<String, Value>,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Similarity score, if the search has a query.
    #[schema(required = true)]
    pub score: Option<f64>,
}

/// Results of a search.
#[derive(Debug, ToSchema)]
pub struct ItemHits {
    /// Items.
    #[schema(inline)]
    pub items: Vec<ItemHit>,
}

/// Results of a search of namespaces.
#[derive(Debug, ToSchema)]
pub struct Namespaces {
    /// Namespaces as lists of labels.
    pub namespaces: Vec<Vec<String>>,
}

/// An item, or null.
#[derive(Debug, ToSchema)]
pub struct ItemOrNull(pub Option<Item>);

/// An error of the item store.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum StoreError {
    /// The key is missing.
    NoKey(#[schema(inline)] MissingKey),
    /// Any other error.
    Other(Error),
}

/// The key is missing.
#[derive(Debug, ToSchema)]
pub struct MissingKey {
    /// Description of the error.
    pub error: String,
}
