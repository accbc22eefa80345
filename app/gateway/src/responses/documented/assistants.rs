//! Assistants and their graphs.

use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::selection::selection;
use crate::schema::changed_object;

/// An agent with its settings.
#[derive(Debug, ToSchema)]
pub struct Assistant {
    /// Id of the assistant.
    #[schema(format = "uuid")]
    pub assistant_id: String,
    /// Name of the graph.
    pub graph_id: String,
    /// Run configuration.
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    /// Settings of the agent.
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// Metadata.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Name of the assistant.
    pub name: String,
    /// Description of the assistant.
    #[schema(required = true)]
    pub description: Option<String>,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Number of the version, beginning with 1.
    #[schema(minimum = 1)]
    pub version: u64,
}

/// A node of a graph.
#[derive(Debug, ToSchema)]
pub struct GraphNode {
    /// Id of the node.
    pub id: String,
    /// Type of the node.
    #[schema(nullable = false, rename = "type")]
    pub kind: Option<String>,
    /// Data of the node.
    #[schema(value_type = Object, required = false)]
    pub data: Option<Map<String, Value>>,
    /// Metadata.
    #[schema(value_type = Object, required = false)]
    pub metadata: Option<Map<String, Value>>,
}

/// An edge of a graph.
#[derive(Debug, ToSchema)]
pub struct GraphEdge {
    /// Source node.
    pub source: String,
    /// Target node.
    pub target: String,
    /// `true` if the edge depends on a condition.
    #[schema(nullable = false)]
    pub conditional: Option<bool>,
}

/// An agent as nodes and edges.
#[derive(Debug, ToSchema)]
pub struct Graph {
    /// Name of the graph.
    pub graph_id: String,
    /// Nodes.
    #[schema(inline)]
    pub nodes: Vec<GraphNode>,
    /// Edges.
    #[schema(inline)]
    pub edges: Vec<GraphEdge>,
}

/// JSON schemas of an agent.
#[derive(Debug, ToSchema)]
pub struct GraphSchemas {
    /// Name of the graph.
    pub graph_id: String,
    /// Schema of the input.
    #[schema(value_type = Object)]
    pub input_schema: Map<String, Value>,
    /// Schema of the output.
    #[schema(value_type = Object)]
    pub output_schema: Map<String, Value>,
    /// Schema of the state.
    #[schema(value_type = Object)]
    pub state_schema: Map<String, Value>,
    /// Schema of the configuration.
    #[schema(value_type = Object)]
    pub config_schema: Map<String, Value>,
    /// Schema of the context.
    #[schema(value_type = Object)]
    pub context_schema: Map<String, Value>,
}

/// Nested graphs by node name.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
pub struct Subgraphs(pub Map<String, Value>);

selection!(
    /// A page of assistants.
    Assistants of Assistant: "An assistant, or its selected fields."
);

/// A page of an assistant's versions.
#[derive(Debug)]
pub struct AssistantVersions;

impl PartialSchema for AssistantVersions {
    fn schema() -> RefOr<Schema> {
        let version = changed_object(Assistant::schema(), |object| {
            object.properties.shift_remove("updated_at");
            object.required.retain(|name| name != "updated_at");
            object.description = Some("A version of an assistant.".to_owned());
        });
        ArrayBuilder::new().items(version).into()
    }
}

impl ToSchema for AssistantVersions {}
