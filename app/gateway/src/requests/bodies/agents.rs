//! Bodies about custom agents and the user profile.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::present;
use crate::extract::request_body;
use crate::schema::words;

words! {
    /// Reasoning effort of a model.
    Effort(&'static str) {
        "low" => "low",
        "medium" => "medium",
        "high" => "high",
    }
}

/// Settings of an agent's model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentModelSettings {
    /// Sampling temperature.
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// Maximum number of output tokens.
    #[schema(minimum = 1, maximum = 200_000)]
    pub max_tokens: Option<u64>,
}

/// A new agent.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AgentCreate {
    /// Name of the agent.
    #[serde(default)]
    #[schema(required = true, pattern = "^[A-Za-z0-9-]+$", max_length = 64)]
    pub name: String,
    /// Description of the agent.
    #[serde(default)]
    pub description: Option<String>,
    /// Instructions of the agent.
    #[serde(default)]
    pub soul: Option<String>,
    /// Name of the model; the default model if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub model: Option<Option<String>>,
    /// Groups of tools; all groups if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tool_groups: Option<Option<Vec<String>>>,
    /// Skills; all enabled ones if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub skills: Option<Option<Vec<String>>>,
    /// Settings of the model.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<AgentModelSettings>)]
    pub model_settings: Option<Option<Map<String, Value>>>,
    /// `true` if the model thinks.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    pub thinking_enabled: Option<Option<bool>>,
    /// Reasoning effort.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Effort>, inline)]
    pub reasoning_effort: Option<Option<Effort>>,
}

request_body!(AgentCreate);

/// A change of an agent. Missing fields stay unchanged.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct AgentUpdate {
    /// Description of the agent.
    #[serde(default)]
    pub description: Option<String>,
    /// Instructions of the agent.
    #[serde(default)]
    pub soul: Option<String>,
    /// Name of the model; the default model if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub model: Option<Option<String>>,
    /// Groups of tools; all groups if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tool_groups: Option<Option<Vec<String>>>,
    /// Skills; all enabled ones if null.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub skills: Option<Option<Vec<String>>>,
    /// Settings of the model.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<AgentModelSettings>)]
    pub model_settings: Option<Option<Map<String, Value>>>,
    /// `true` if the model thinks.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    pub thinking_enabled: Option<Option<bool>>,
    /// Reasoning effort.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Effort>, inline)]
    pub reasoning_effort: Option<Option<Effort>>,
}

request_body!(AgentUpdate);

/// The user profile.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct UserProfile {
    /// Text of the profile.
    #[serde(default)]
    pub content: Option<String>,
}

request_body!(UserProfile);
