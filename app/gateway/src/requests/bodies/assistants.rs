//! Bodies about assistants.

use deerflow_domain::assistants::AssistantSort;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::shared::{Config, Metadata};
use super::threads::{IfExists, SortOrder};
use crate::extract::request_body;
use crate::schema::words;

words! {
    /// Sort key of assistants.
    AssistantSortBy(AssistantSort) {
        "assistant_id" => AssistantSort::Id,
        "created_at" => AssistantSort::CreatedAt,
        "updated_at" => AssistantSort::UpdatedAt,
        "name" => AssistantSort::Name,
        "graph_id" => AssistantSort::Graph,
    }
}

words! {
    /// Field of an assistant.
    AssistantField(()) {
        "assistant_id" => (),
        "graph_id" => (),
        "name" => (),
        "description" => (),
        "config" => (),
        "context" => (),
        "created_at" => (),
        "updated_at" => (),
        "metadata" => (),
        "version" => (),
    }
}

/// A new assistant.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AssistantCreate {
    /// Run configuration.
    #[serde(default)]
    #[schema(value_type = Config)]
    pub config: Option<Map<String, Value>>,
    /// Settings of the agent. Cannot be combined with `config.configurable`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// Id of the resource; generated if absent.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub assistant_id: Option<String>,
    /// Name of the graph.
    #[serde(default)]
    #[schema(required = true, examples("lead_agent"))]
    pub graph_id: String,
    /// Name of the assistant.
    #[serde(default)]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Description of the assistant.
    #[serde(default)]
    pub description: Option<String>,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Action if the id already exists.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub if_exists: Option<IfExists>,
}

request_body!(AssistantCreate);

/// Metadata is merged, everything else is replaced.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AssistantPatch {
    /// Run configuration.
    #[serde(default)]
    #[schema(value_type = Config)]
    pub config: Option<Map<String, Value>>,
    /// Settings of the agent. Cannot be combined with `config.configurable`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// Name of the graph.
    #[serde(default)]
    #[schema(nullable = false)]
    pub graph_id: Option<String>,
    /// Name of the assistant.
    #[serde(default)]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Description of the assistant.
    #[serde(default)]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
}

request_body!(AssistantPatch);

/// A search of assistants.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AssistantSearch {
    /// Name of the graph.
    #[serde(default)]
    #[schema(nullable = false)]
    pub graph_id: Option<String>,
    /// Substring of the name, case-insensitive.
    #[serde(default)]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
    /// Maximum number of results.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 1000, default = 10)]
    pub limit: Option<u64>,
    /// Number of results to skip.
    #[serde(default)]
    #[schema(
        nullable = false,
        minimum = 0,
        maximum = 4_294_967_295_u32,
        default = 0
    )]
    pub offset: Option<u64>,
    /// Sort key.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_by: Option<AssistantSortBy>,
    /// Order of the results.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_order: Option<SortOrder>,
    /// Fields to return.
    #[serde(default)]
    #[schema(value_type = Vec<AssistantField>, inline)]
    pub select: Option<Vec<String>>,
}

request_body!(AssistantSearch);

/// A count of assistants.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AssistantCount {
    /// Name of the graph.
    #[serde(default)]
    #[schema(nullable = false)]
    pub graph_id: Option<String>,
    /// Substring of the name, case-insensitive.
    #[serde(default)]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
}

request_body!(AssistantCount);

/// A search of an assistant's versions.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct VersionSearch {
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
    /// Maximum number of results.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 1000, default = 10)]
    pub limit: Option<u64>,
    /// Number of results to skip.
    #[serde(default)]
    #[schema(
        nullable = false,
        minimum = 0,
        maximum = 4_294_967_295_u32,
        default = 0
    )]
    pub offset: Option<u64>,
}

request_body!(VersionSearch);

/// The version to restore.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct VersionChange {
    /// Number of the version.
    #[serde(default)]
    #[schema(required = true, minimum = 1, maximum = 4_294_967_295_u32)]
    pub version: u32,
}

request_body!(VersionChange);
