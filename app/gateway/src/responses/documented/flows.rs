//! Flows.

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Owner of a flow.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum FlowOwnerName {
    /// `system`.
    System,
    /// `user`.
    User,
}

/// One problem of a flow and its place.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FlowFinding {
    /// Code of the problem.
    pub code: String,
    /// Problem and what would be right.
    pub message: String,
    /// Place in the document, as a JSON pointer.
    #[schema(nullable = false)]
    pub path: Option<String>,
    /// Node.
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    /// Index of the edge.
    #[schema(nullable = false, minimum = 0)]
    pub edge_index: Option<u64>,
    /// Agent.
    #[schema(nullable = false)]
    pub agent_id: Option<String>,
    /// Port or routing handle.
    #[schema(nullable = false)]
    pub handle: Option<String>,
    /// Key of the setting.
    #[schema(nullable = false)]
    pub field: Option<String>,
    /// Line in the text, from 1.
    #[schema(nullable = false, minimum = 1)]
    pub line: Option<u64>,
    /// File in the archive.
    #[schema(nullable = false)]
    pub file: Option<String>,
}

/// Result of a validation.
#[derive(Debug, ToSchema)]
pub struct FlowValidation {
    /// `true` if the flow may run.
    pub valid: bool,
    /// Problems that prevent runs.
    pub errors: Vec<FlowFinding>,
    /// Problems that do not.
    pub warnings: Vec<FlowFinding>,
}

/// A refused flow: a text, or all findings.
#[derive(Debug, ToSchema)]
pub struct FlowError {
    /// A text, or all findings.
    #[schema(inline)]
    pub detail: FlowErrorDetail,
}

/// A text, or all findings.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum FlowErrorDetail {
    /// A text.
    Text(String),
    /// Findings.
    Findings(Vec<FlowFinding>),
}

/// A flow without its content.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FlowEntry {
    /// Id of the flow.
    pub flow_id: String,
    /// Id of the assistant that runs it.
    pub assistant_id: String,
    /// Owner.
    #[schema(inline)]
    pub owner: FlowOwnerName,
    /// Name.
    pub name: String,
    /// Description.
    #[schema(required = true)]
    pub description: Option<String>,
    /// Version of the document format.
    pub schema_version: String,
    /// Number of nodes.
    #[schema(minimum = 0)]
    pub node_count: u64,
    /// Number of agent definitions.
    #[schema(minimum = 0)]
    pub agent_count: u64,
    /// Number of the current version.
    #[schema(minimum = 1)]
    pub version: u64,
    /// Hash of the content.
    pub content_hash: String,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Errors of a newer content of a system flow, which is not used.
    pub errors: Vec<FlowFinding>,
    /// Warnings of a stored content.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<FlowFinding>>,
}

/// Flows in the order of their ids.
#[derive(Debug, ToSchema)]
pub struct FlowEntries(pub Vec<FlowEntry>);

/// A file of a flow's project.
#[derive(Debug, ToSchema)]
pub struct FlowAssetFile {
    /// Path in the project.
    pub path: String,
    /// Text.
    pub text: String,
}

/// A flow with its content.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FlowDocument {
    /// Id of the flow.
    pub flow_id: String,
    /// Id of the assistant that runs it.
    pub assistant_id: String,
    /// Owner.
    #[schema(inline)]
    pub owner: FlowOwnerName,
    /// Number of the version.
    #[schema(minimum = 1)]
    pub version: u64,
    /// Hash of the content.
    pub content_hash: String,
    /// Time of creation of the flow.
    #[schema(format = "date-time", required = true)]
    pub created_at: Option<String>,
    /// Time of creation of the version.
    #[schema(format = "date-time", required = true)]
    pub updated_at: Option<String>,
    /// Text as it was sent.
    pub content: String,
    /// Files that the flow uses.
    pub assets: Vec<FlowAssetFile>,
}

/// A version of a flow.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FlowVersionEntry {
    /// Number of the version.
    #[schema(minimum = 1)]
    pub version: u64,
    /// Hash of the content.
    pub content_hash: String,
    /// Name.
    pub name: String,
    /// Description.
    #[schema(required = true)]
    pub description: Option<String>,
    /// Number of nodes.
    #[schema(minimum = 0)]
    pub node_count: u64,
    /// Number of agent definitions.
    #[schema(minimum = 0)]
    pub agent_count: u64,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
}

/// Versions of a flow, newest first.
#[derive(Debug, ToSchema)]
pub struct FlowVersions(pub Vec<FlowVersionEntry>);

/// Nodes and edges of a flow.
#[derive(Debug, ToSchema)]
pub struct FlowGraph {
    /// Name of the flow.
    pub name: String,
    /// Node that a run starts with.
    pub start: String,
    /// Nodes that no control edge leaves.
    pub ends: Vec<String>,
    /// Nodes.
    #[schema(value_type = Vec<Object>)]
    pub nodes: Vec<Map<String, Value>>,
    /// Edges.
    #[schema(value_type = Vec<Object>)]
    pub edges: Vec<Map<String, Value>>,
}

/// JSON Schema of flow documents.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
pub struct FlowSchema(pub Map<String, Value>);

/// Descriptions of adapter kinds.
#[derive(Debug, ToSchema)]
#[schema(value_type = Vec<Object>)]
pub struct FlowAdapterKinds(pub Vec<Map<String, Value>>);

/// Descriptions of node kinds.
#[derive(Debug, ToSchema)]
#[schema(value_type = Vec<Object>)]
pub struct FlowNodeKinds(pub Vec<Map<String, Value>>);

/// An agent of the prompt assets.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FlowAssetAgent {
    /// Id.
    pub agent_id: String,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Kind of the output.
    pub output_kind: String,
    /// `true` if its files have problems.
    pub has_errors: bool,
}

/// Prompt assets of a project.
#[derive(Debug, ToSchema)]
pub struct FlowAssets {
    /// Agents.
    pub agents: Vec<FlowAssetAgent>,
    /// Agents, instructions and skills with their texts.
    #[schema(value_type = Object)]
    pub manifest: Map<String, Value>,
    /// Problems of the files.
    #[schema(value_type = Vec<Object>)]
    pub errors: Vec<Map<String, Value>>,
}

/// A document of the system folder with problems.
#[derive(Debug, ToSchema)]
pub struct FlowFileProblem {
    /// Path in the folder.
    pub file: String,
    /// Problems.
    pub errors: Vec<FlowFinding>,
}

/// State of the system flows.
#[derive(Debug, ToSchema)]
pub struct SystemFlowState {
    /// Ids of the flows.
    pub flows: Vec<String>,
    /// Documents with problems; the last valid content of a flow stays in use.
    pub problems: Vec<FlowFileProblem>,
    /// Problems of the prompt assets.
    #[schema(value_type = Vec<Object>)]
    pub errors: Vec<Map<String, Value>>,
}
