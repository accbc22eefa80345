//! Bodies about scheduled tasks.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::extract::request_body;

/// A new scheduled task.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct TaskCreate {
    /// Title.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 200)]
    pub title: String,
    /// Text that each run receives.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 20_000)]
    pub prompt: String,
    /// `once` or `cron`.
    #[serde(default)]
    #[schema(required = true, examples("cron"))]
    pub schedule_type: String,
    /// `{"run_at": ..}` with an ISO 8601 date-time, or `{"cron": ..}` with five fields.
    #[serde(default)]
    #[schema(required = true, value_type = Object)]
    pub schedule_spec: Map<String, Value>,
    /// IANA time zone name.
    #[serde(default)]
    #[schema(required = true, examples("UTC"))]
    pub timezone: String,
    /// `fresh_thread_per_run` or `reuse_thread`.
    #[serde(default)]
    pub context_mode: Option<String>,
    /// Thread to reuse.
    #[serde(default)]
    pub thread_id: Option<String>,
}

request_body!(TaskCreate);

/// Changes of a scheduled task. The type of its schedule does not change.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct TaskPatch {
    /// Title.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// Text that each run receives.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 20_000)]
    pub prompt: Option<String>,
    /// `{"run_at": ..}` or `{"cron": ..}`, by the type of the schedule.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub schedule_spec: Option<Map<String, Value>>,
    /// IANA time zone name.
    #[serde(default)]
    pub timezone: Option<String>,
    /// `fresh_thread_per_run` or `reuse_thread`.
    #[serde(default)]
    pub context_mode: Option<String>,
    /// Thread to reuse.
    #[serde(default)]
    pub thread_id: Option<String>,
}

request_body!(TaskPatch);
