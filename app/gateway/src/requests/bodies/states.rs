//! Bodies that read or change a thread's state.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::shared::Metadata;
use crate::extract::request_body;
use crate::schema::{any_of, reference};

/// Reference to a checkpoint of a thread.
#[derive(Debug, ToSchema)]
pub struct Checkpoint {
    /// Id of the thread.
    #[schema(nullable = false, format = "uuid")]
    pub thread_id: Option<String>,
    /// Namespace of a nested agent: `node:task id`.
    #[schema(nullable = false)]
    pub checkpoint_ns: Option<String>,
    /// Id of the checkpoint.
    #[schema(format = "uuid")]
    pub checkpoint_id: Option<String>,
    /// Checkpoints of the enclosing agents, by namespace.
    #[schema(value_type = Option<Object>)]
    pub checkpoint_map: Option<Map<String, Value>>,
}

/// Messages and channels; unknown channels are rejected.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StateValues)]
pub struct StateValuesBody {
    /// New messages, or a single one.
    #[schema(inline, nullable = false)]
    pub messages: Option<Messages>,
    /// Title of the thread.
    pub title: Option<String>,
    /// Folders of the thread.
    #[schema(value_type = Option<Object>)]
    pub thread_data: Option<Map<String, Value>>,
    /// Uploaded files.
    #[schema(value_type = Option<Vec<Object>>)]
    pub uploaded_files: Option<Vec<Map<String, Value>>>,
    /// Paths of files that the agent presented.
    pub artifacts: Option<Vec<String>>,
    /// Plan of the agent.
    #[schema(value_type = Option<Vec<Object>>)]
    pub todos: Option<Vec<Map<String, Value>>>,
    /// Images that the agent viewed.
    #[schema(value_type = Option<Object>)]
    pub viewed_images: Option<Map<String, Value>>,
    /// Sandbox of the thread.
    #[schema(value_type = Option<Object>)]
    pub sandbox: Option<Map<String, Value>>,
    /// Goal of the thread.
    #[schema(value_type = Option<Object>)]
    pub goal: Option<Map<String, Value>>,
    /// Tools that were promoted to the agent.
    #[schema(value_type = Option<Object>)]
    pub promoted: Option<Map<String, Value>>,
    /// Name of the agent that the run created.
    pub created_agent_name: Option<String>,
    /// Summary of compacted messages.
    pub summary_text: Option<String>,
    /// Tasks in the background.
    #[schema(value_type = Option<Vec<Object>>)]
    pub background_tasks: Option<Vec<Map<String, Value>>>,
}

/// Messages, or a single one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Messages {
    /// Several messages.
    Many(Vec<Message>),
    /// One message.
    One(Message),
}

/// A message; plain text is a user message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Message {
    /// Text of the user.
    Text(String),
    /// A message with a type.
    Typed(#[schema(inline)] TypedMessage),
    /// A message with a role.
    WithRole(#[schema(inline)] RoleMessage),
}

/// A message with a type.
#[derive(Debug, Deserialize, ToSchema)]
pub struct TypedMessage {
    /// Type of the message; a message has either `type` or `role`.
    #[serde(rename = "type")]
    #[schema(inline)]
    pub kind: MessageType,
    /// Content of the message.
    pub content: Content,
    /// Id of the message.
    pub id: Option<String>,
    /// Name of the author.
    pub name: Option<String>,
    /// Id of the tool call that the message answers.
    #[schema(nullable = false)]
    pub tool_call_id: Option<String>,
    /// Additional data.
    #[schema(value_type = Object, required = false)]
    pub additional_kwargs: Option<Map<String, Value>>,
}

/// Type of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MessageType {
    /// A message of the user.
    Human,
    /// A message of the model.
    Ai,
    /// An instruction.
    System,
    /// A result of a tool.
    Tool,
    /// The removal of a message.
    Remove,
}

/// A message with a role.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RoleMessage {
    /// Role of the author.
    #[schema(inline)]
    pub role: Role,
    /// Content of the message.
    pub content: Content,
}

/// Role of a message's author.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The application.
    System,
}

/// Content of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks of text and other content.
    Blocks(#[schema(inline)] Vec<ContentBlock>),
}

/// Block of a content.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ContentBlock {
    /// Type of the block.
    #[serde(rename = "type")]
    pub kind: String,
    /// Text of the block.
    #[schema(nullable = false)]
    pub text: Option<String>,
}

/// An external update of a thread's state.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct StateUpdate {
    /// Channel values.
    #[serde(default)]
    #[schema(value_type = Option<StateValuesBody>)]
    pub values: Option<Map<String, Value>>,
    /// Node that the update is attributed to.
    #[serde(default)]
    #[schema(nullable = false)]
    pub as_node: Option<String>,
    /// Checkpoint on top of which the update is written; the newest if absent.
    #[serde(default)]
    #[schema(value_type = Checkpoint)]
    pub checkpoint: Option<Map<String, Value>>,
    /// Id of that checkpoint.
    #[serde(default)]
    #[schema(format = "uuid")]
    pub checkpoint_id: Option<String>,
}

request_body!(StateUpdate);

/// A change of a checkpoint's metadata.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct StatePatch {
    /// Metadata to merge.
    #[serde(default)]
    #[schema(value_type = Metadata, required = true)]
    pub metadata: Map<String, Value>,
}

request_body!(StatePatch);

/// A reference to a state.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct StateAt {
    /// Includes the states of nested agents.
    #[serde(default)]
    #[schema(nullable = false)]
    pub subgraphs: Option<bool>,
    /// Checkpoint of the state.
    #[serde(default)]
    #[schema(value_type = Checkpoint, required = true)]
    pub checkpoint: Value,
    /// Id of the checkpoint.
    #[serde(default)]
    #[schema(ignore)]
    pub checkpoint_id: Value,
}

request_body!(
    StateAt,
    platform_only: ["subgraphs"],
    checked_later: ["checkpoint"]
);

/// A search in a thread's history.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct HistorySearch {
    /// Maximum number of results.
    #[serde(default)]
    #[schema(value_type = u64, minimum = 1, maximum = 1000, default = 1)]
    pub limit: Value,
    /// Only states before this checkpoint.
    #[serde(default)]
    #[schema(schema_with = cursor)]
    pub before: Value,
    /// Checkpoint at which the history begins.
    #[serde(default)]
    #[schema(value_type = Checkpoint)]
    pub checkpoint: Option<Map<String, Value>>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
    /// Id of the checkpoint at which the history begins.
    #[serde(default)]
    #[schema(ignore)]
    pub checkpoint_id: Value,
}

request_body!(
    HistorySearch,
    platform_only: ["metadata", "checkpoint", "checkpoint_id"],
    checked_later: ["limit", "before"]
);

/// Schema of a cursor: an id, a checkpoint, or a configuration that names one.
fn cursor() -> Schema {
    let id = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::Custom("uuid".to_owned())));
    Schema::AnyOf(
        any_of([id.into(), reference::<Checkpoint>(), CursorConfig::schema()])
            .description(Some("Only states before this checkpoint."))
            .build(),
    )
}

/// A configuration that names a checkpoint.
#[derive(Debug, ToSchema)]
pub struct CursorConfig {
    /// The checkpoint.
    pub configurable: Checkpoint,
}
