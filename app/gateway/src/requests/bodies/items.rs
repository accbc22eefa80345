//! Bodies about the item store.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use crate::extract::request_body;
use crate::schema::any_of;

/// An item to store.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ItemPut {
    /// Labels of the namespace, outermost first.
    #[serde(default)]
    #[schema(schema_with = own_labels, required = true)]
    pub namespace: Vec<String>,
    /// Key of the item.
    #[serde(default)]
    #[schema(required = true)]
    pub key: String,
    /// Value of the item.
    #[serde(default)]
    #[schema(value_type = Object, required = true)]
    pub value: Map<String, Value>,
    /// Fields indexed for semantic search; false for none.
    #[serde(default)]
    #[schema(schema_with = indexed_fields)]
    pub index: Value,
    /// Time to live, in minutes.
    #[serde(default)]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 52_704_000)]
    pub ttl: Value,
}

request_body!(ItemPut);

/// The item to delete.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ItemDelete {
    /// Labels of the namespace, outermost first.
    #[serde(default)]
    #[schema(schema_with = labels)]
    pub namespace: Vec<String>,
    /// Key of the item.
    #[serde(default)]
    #[schema(required = true)]
    pub key: String,
}

request_body!(ItemDelete);

/// A search of items.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ItemSearch {
    /// Labels of the namespace, outermost first.
    #[serde(default)]
    #[schema(schema_with = nullable_labels)]
    pub namespace_prefix: Option<Vec<String>>,
    /// Values that must match, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub filter: Option<Map<String, Value>>,
    /// Query of a semantic search.
    #[serde(default)]
    pub query: Option<String>,
    /// Maximum number of results.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 1000, default = 10)]
    pub limit: Option<u64>,
    /// Number of results to skip.
    #[serde(default)]
    #[schema(nullable = false, minimum = 0, maximum = 100_000, default = 0)]
    pub offset: Option<u64>,
    /// Extends the time to live of the results.
    #[serde(default)]
    pub refresh_ttl: Option<bool>,
}

request_body!(ItemSearch);

/// A search of namespaces.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct NamespaceSearch {
    /// First labels of the namespaces.
    #[serde(default)]
    #[schema(nullable = false)]
    pub prefix: Option<Vec<String>>,
    /// Last labels of the namespaces.
    #[serde(default)]
    #[schema(nullable = false)]
    pub suffix: Option<Vec<String>>,
    /// Maximum number of labels; deeper namespaces are truncated.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 1000)]
    pub max_depth: Option<u64>,
    /// Maximum number of results.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<u64>,
    /// Number of results to skip.
    #[serde(default)]
    #[schema(nullable = false, minimum = 0, maximum = 100_000, default = 0)]
    pub offset: Option<u64>,
}

request_body!(NamespaceSearch);

fn labels() -> ArrayBuilder {
    let label = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .pattern(Some("^[^.]+$"));
    ArrayBuilder::new()
        .items(label)
        .description(Some("Labels of the namespace, outermost first."))
}

fn own_labels() -> ArrayBuilder {
    labels().min_items(Some(1))
}

fn nullable_labels() -> ArrayBuilder {
    labels().schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
}

fn indexed_fields() -> Schema {
    let off = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .enum_values(Some([false]));
    let named = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
    let null = ObjectBuilder::new().schema_type(Type::Null);
    Schema::AnyOf(
        any_of([off.into(), named.into(), null.into()])
            .description(Some("Fields indexed for semantic search; false for none."))
            .build(),
    )
}
