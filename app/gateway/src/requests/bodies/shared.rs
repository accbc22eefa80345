//! Parts of several bodies.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::extract::request_body;

/// Any data of the client. Keys that only the server sets are dropped.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
pub struct Metadata(pub Map<String, Value>);

/// Run configuration.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct Config {
    /// Tags of the run.
    #[serde(default)]
    #[schema(nullable = false)]
    pub tags: Option<Vec<String>>,
    /// Maximum number of steps.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1, maximum = 4_294_967_295_u32)]
    pub recursion_limit: Option<u64>,
    /// Settings of the agent. Cannot be combined with `context`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub configurable: Option<Map<String, Value>>,
    /// Metadata of the run.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Value,
}

request_body!(Config, checked_later: ["metadata"]);
