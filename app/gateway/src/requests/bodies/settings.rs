//! Bodies about skills, MCP servers and user memory.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::extract::request_body;

/// MCP servers.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct McpConfig {
    /// Servers by name; `docs/mcp.md` describes them.
    #[serde(default)]
    #[schema(value_type = Object, required = true)]
    pub mcp_servers: Map<String, Value>,
}

request_body!(McpConfig);

/// An MCP server to enable or disable.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct McpSwitch {
    /// Name of the server.
    #[serde(default)]
    #[schema(nullable = false, required = true, min_length = 1)]
    pub server_name: Option<String>,
    /// `true` if the server is used.
    #[serde(default)]
    #[schema(required = true)]
    pub enabled: bool,
}

request_body!(McpSwitch);

/// Credentials of a bot.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ChannelCredentials {
    /// Texts by field name. A masked text keeps the stored value.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub values: Map<String, Value>,
}

request_body!(ChannelCredentials);

/// State of a skill.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct SkillSwitch {
    /// `true` if agents use the skill.
    #[serde(default)]
    #[schema(required = true)]
    pub enabled: bool,
}

request_body!(SkillSwitch);

/// A skill to install.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct SkillInstall {
    /// Id of the thread.
    #[serde(default)]
    #[schema(required = true)]
    pub thread_id: String,
    /// Path of a `.skill` archive in the thread's files.
    #[serde(default)]
    #[schema(required = true)]
    pub path: String,
}

request_body!(SkillInstall);

/// Text of a skill.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct SkillText {
    /// Text of `SKILL.md`.
    #[serde(default)]
    #[schema(required = true)]
    pub content: String,
}

request_body!(SkillText);

/// A change of a skill to revert.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct SkillRollback {
    /// Change to revert; -1 for the last one.
    #[serde(default)]
    pub history_index: Option<i64>,
}

request_body!(SkillRollback);

/// A memory in the format of `GET /api/memory/export`.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct MemoryImport {}

request_body!(MemoryImport);

/// A new fact.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct FactAdd {
    /// Text of the fact.
    #[serde(default)]
    #[schema(required = true, nullable = false)]
    pub content: Option<String>,
    /// Category of the fact.
    #[serde(default)]
    pub category: Option<String>,
    /// Confidence in the fact.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    pub confidence: Value,
}

request_body!(FactAdd);

/// A change of a fact. Missing fields stay unchanged.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct FactPatch {
    /// Text of the fact.
    #[serde(default)]
    pub content: Option<String>,
    /// Category of the fact.
    #[serde(default)]
    pub category: Option<String>,
    /// Confidence in the fact.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    pub confidence: Value,
}

request_body!(FactPatch);
