//! The server and its administration.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};

use super::flows::FlowFinding;

/// An undelivered webhook call.
#[derive(Debug, ToSchema)]
pub struct WebhookCall {
    /// Id of the run.
    pub run_id: String,
    /// URL of the receiver, without the query.
    pub url: String,
    /// End of the run.
    #[schema(format = "date-time")]
    pub ended_at: String,
    /// Number of attempts.
    #[schema(minimum = 0)]
    pub tries: u64,
    /// Time of the next attempt; null for a dead letter.
    #[schema(format = "date-time", required = true)]
    pub due_at: Option<String>,
    /// Time at which the call became a dead letter; null while attempts remain.
    #[schema(format = "date-time", required = true)]
    pub died_at: Option<String>,
    /// Error of the last attempt.
    #[schema(required = true)]
    pub last_error: Option<String>,
}

/// State of the server.
#[derive(Debug, ToSchema)]
pub struct Health {
    /// `true` if the server is alive.
    pub ok: bool,
    /// States of further services; none.
    #[schema(value_type = Object)]
    pub services: Map<String, Value>,
}

/// Numbers of queued and active runs.
#[derive(Debug, ToSchema)]
pub struct QueueMetrics {
    /// Number of queued runs.
    pub n_pending: i64,
    /// Number of active runs.
    pub n_running: i64,
    /// Longest waiting time of a queued run, in seconds.
    #[schema(required = true)]
    pub pending_runs_wait_time_max_secs: Option<f64>,
    /// Median waiting time of the queued runs, in seconds.
    #[schema(required = true)]
    pub pending_runs_wait_time_med_secs: Option<f64>,
}

/// Number of answered requests of one kind.
#[derive(Debug, ToSchema)]
pub struct RequestCount {
    /// Method.
    pub method: String,
    /// Pattern of the route.
    pub path: String,
    /// Status of the responses.
    pub status: u16,
    /// Number of requests.
    #[schema(minimum = 0)]
    pub count: u64,
}

/// Requests to this process.
#[derive(Debug, ToSchema)]
pub struct ApiMetrics {
    /// Numbers of answered requests.
    #[schema(inline)]
    pub http_requests_total: Vec<RequestCount>,
}

/// Execution of runs in this process.
#[derive(Debug, ToSchema)]
pub struct WorkerMetrics {
    /// Maximum number of runs; null, because there is no limit.
    #[schema(required = true)]
    pub max: Option<i64>,
    /// Number of runs that are executed.
    pub active: i64,
    /// Number of further runs that can be executed; null, because there is no limit.
    #[schema(required = true)]
    pub available: Option<i64>,
}

/// Metrics of this process and of the queue of all processes.
#[derive(Debug, ToSchema)]
pub struct Metrics {
    /// Requests to this process.
    #[schema(inline)]
    pub api: ApiMetrics,
    /// Execution of runs in this process.
    #[schema(inline)]
    pub workers: WorkerMetrics,
    /// Numbers of queued and active runs.
    #[schema(inline)]
    pub queue: QueueMetrics,
}

/// Current status.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum DeploymentStatus {
    /// `healthy`.
    Healthy,
    /// `degraded`.
    Degraded,
    /// `unhealthy`.
    Unhealthy,
    /// `ready`.
    Ready,
    /// `not ready`.
    #[schema(rename = "not ready")]
    NotReady,
    /// `shutting down`.
    #[schema(rename = "shutting down")]
    ShuttingDown,
}

/// State of a component.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ComponentState {
    /// `ok`.
    Ok,
    /// `failed`.
    Failed,
    /// `silent`.
    Silent,
}

/// State of a component.
#[derive(Debug, ToSchema)]
pub struct ComponentHealth {
    /// State of the component.
    #[schema(inline, nullable = false)]
    pub state: Option<ComponentState>,
    /// Duration of the check, in milliseconds.
    #[schema(nullable = false)]
    pub latency_ms: Option<f64>,
    /// Reason of the failure.
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

/// Health of the server's components.
#[derive(Debug, ToSchema)]
pub struct Deployment {
    /// Current status.
    #[schema(inline)]
    pub status: DeploymentStatus,
    /// Name of the service.
    pub service: String,
    /// Reason why no runs are accepted.
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// State of `database`, `data_folder`, `run_events`, `stream_bridge` and `lease`.
    #[schema(inline)]
    pub checks: BTreeMap<String, ComponentHealth>,
}

/// Version and features of the server.
#[derive(Debug, ToSchema)]
pub struct Info {
    /// Version of the server.
    pub version: String,
    /// Supported features.
    pub flags: BTreeMap<String, bool>,
    /// Further facts; none.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Host of the server.
    #[schema(value_type = Object)]
    pub host: Map<String, Value>,
}

/// An OpenAPI document.
#[derive(Debug, ToSchema)]
pub struct Document {
    /// Version of OpenAPI.
    pub openapi: String,
    /// Title and version.
    #[schema(value_type = Object)]
    pub info: Map<String, Value>,
    /// Operations by path and method.
    #[schema(value_type = Object)]
    pub paths: Map<String, Value>,
    /// Schemas by name.
    #[schema(value_type = Object, required = false)]
    pub components: Option<Map<String, Value>>,
}

/// An error.
#[derive(Debug, ToSchema)]
pub struct Error {
    /// Human-readable description of the error.
    pub detail: String,
}

/// Undelivered webhook calls.
#[derive(Debug, ToSchema)]
pub struct WebhookCalls(pub Vec<WebhookCall>);

/// Number of matches.
#[derive(Debug, ToSchema)]
#[schema(minimum = 0)]
pub struct Count(pub u64);

/// An empty object.
#[derive(Debug, ToSchema)]
pub struct Nothing {}

/// A JSON value. `docs/api.md` describes its fields.
#[derive(Debug, ToSchema)]
pub struct DeerFlowAnswer(pub Value);

/// An error in DeerFlow's dialect.
#[derive(Debug, ToSchema)]
pub struct DeerFlowError {
    /// A text, a list of validation issues or of findings, or a failure of sign-in.
    #[schema(inline)]
    pub detail: ErrorDetail,
}

/// A text, a list of validation issues or of findings in an assistant's content, or a failure of
/// sign-in.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum ErrorDetail {
    /// Description of the error.
    Text(String),
    /// Validation issues.
    Issues(#[schema(inline)] Vec<ValidationIssue>),
    /// Findings in the content of an assistant.
    Findings(#[schema(inline)] Vec<FlowFinding>),
    /// Failure of sign-in.
    SignIn(#[schema(inline)] SignInDetail),
}

/// A failure of sign-in.
#[derive(Debug, ToSchema)]
pub struct SignInDetail {
    /// Kind of the failure.
    pub code: String,
    /// Description for people.
    pub message: String,
    /// Explanation for programs.
    #[schema(value_type = String, required = false)]
    pub hint: Option<String>,
}

/// A validation issue.
#[derive(Debug, ToSchema)]
pub struct ValidationIssue {
    /// Kind of the issue.
    #[schema(rename = "type")]
    pub kind: String,
    /// Location of the value.
    #[schema(schema_with = location)]
    pub loc: Vec<Value>,
    /// Violated rule.
    pub msg: String,
    /// Received value.
    pub input: Value,
    /// Parameters of the rule.
    #[schema(value_type = Object, required = false)]
    pub ctx: Option<Map<String, Value>>,
}

fn location() -> ArrayBuilder {
    let part = SchemaType::from_iter([Type::String, Type::Integer]);
    ArrayBuilder::new().items(ObjectBuilder::new().schema_type(part))
}
