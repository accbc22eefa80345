//! Bodies about crons. The fields of the runs are checked by the rules of a run request.

use deerflow_domain::crons::{AfterRun, CronSort};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::runs::{DurabilityName, MultitaskName, StreamModeNames, nodes};
use super::shared::{Config, Metadata};
use super::states::StateValuesBody;
use crate::extract::request_body;
use crate::schema::words;

words! {
    /// Action on the run's own thread after its end.
    AfterRunName(AfterRun) {
        "delete" => AfterRun::Delete,
        "keep" => AfterRun::Keep,
    }
}

words! {
    /// Sort key of crons.
    CronSortBy(CronSort) {
        "created_at" => CronSort::CreatedAt,
        "updated_at" => CronSort::UpdatedAt,
        "cron_id" => CronSort::CronId,
        "assistant_id" => CronSort::AssistantId,
        "thread_id" => CronSort::ThreadId,
        "next_run_date" => CronSort::NextRunDate,
        "end_time" => CronSort::EndTime,
    }
}

words! {
    /// `true` if the order is ascending.
    CronSortOrder(bool) {
        "asc" => true,
        "desc" => false,
    }
}

words! {
    /// Field of a cron.
    CronField(()) {
        "cron_id" => (),
        "assistant_id" => (),
        "thread_id" => (),
        "on_run_completed" => (),
        "end_time" => (),
        "schedule" => (),
        "timezone" => (),
        "created_at" => (),
        "updated_at" => (),
        "user_id" => (),
        "payload" => (),
        "next_run_date" => (),
        "metadata" => (),
        "enabled" => (),
    }
}

/// A new cron.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct CronCreate {
    /// Five fields: minute, hour, day, month, day of the week.
    #[serde(default)]
    #[schema(required = true, examples("0 8 * * *"))]
    pub schedule: String,
    /// IANA time zone name.
    #[serde(default)]
    #[schema(nullable = false, examples("UTC"))]
    pub timezone: Option<String>,
    /// Time after which the cron no longer fires.
    #[serde(default)]
    #[schema(nullable = false, format = "date-time")]
    pub end_time: Option<String>,
    /// `true` if the cron fires.
    #[serde(default)]
    #[schema(nullable = false, default = true)]
    pub enabled: Option<bool>,
    /// Action on the run's own thread after its end.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub on_run_completed: Option<AfterRunName>,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Id of an assistant, or name of a graph.
    #[serde(default)]
    #[schema(required = true, examples("lead_agent"))]
    pub assistant_id: String,
    /// Action if the thread is busy.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub multitask_strategy: Option<MultitaskName>,
    /// URL that is called when the run ends.
    #[serde(default)]
    #[schema(nullable = false, format = "uri", max_length = 65536)]
    pub webhook: Option<String>,
    /// Allows clients to resume the event stream.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_resumable: Option<bool>,
    /// Stream modes, or a single one.
    #[serde(default)]
    #[schema(value_type = StreamModeNames, inline, default = json!(["values"]))]
    pub stream_mode: Value,
    /// Streams the events of nested agents too.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_subgraphs: Option<bool>,
    /// Nodes before which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_before: Value,
    /// Nodes after which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_after: Value,
    /// Run configuration.
    #[serde(default)]
    #[schema(value_type = Config)]
    pub config: Option<Map<String, Value>>,
    /// Settings of the agent. Cannot be combined with `config.configurable`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// Older form of `durability`.
    #[serde(default)]
    #[schema(nullable = false)]
    pub checkpoint_during: Option<bool>,
    /// Moment at which checkpoints are stored: `sync` before the next step starts, `async` while it
    /// runs, `exit` at the end of the run.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub durability: Option<DurabilityName>,
    /// New input of the thread.
    #[serde(default)]
    #[schema(value_type = Option<StateValuesBody>)]
    pub input: Option<Map<String, Value>>,
}

request_body!(CronCreate);

/// At least one field is required. Null clears `end_time`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(min_properties = 1)]
pub struct CronPatch {
    /// Five fields: minute, hour, day, month, day of the week.
    #[serde(default)]
    #[schema(nullable = false, examples("0 8 * * *"))]
    pub schedule: Option<String>,
    /// IANA time zone name.
    #[serde(default)]
    #[schema(nullable = false)]
    pub timezone: Option<String>,
    /// Time after which the cron no longer fires.
    #[serde(default)]
    #[schema(format = "date-time")]
    pub end_time: Option<String>,
    /// `true` if the cron fires.
    #[serde(default)]
    #[schema(nullable = false, default = true)]
    pub enabled: Option<bool>,
    /// Action on the run's own thread after its end.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub on_run_completed: Option<AfterRunName>,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Run configuration.
    #[serde(default)]
    #[schema(value_type = Config)]
    pub config: Option<Map<String, Value>>,
    /// URL that is called when the run ends.
    #[serde(default)]
    #[schema(nullable = false, format = "uri", max_length = 65536)]
    pub webhook: Option<String>,
    /// Allows clients to resume the event stream.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_resumable: Option<bool>,
    /// Stream modes, or a single one.
    #[serde(default)]
    #[schema(value_type = StreamModeNames, inline, default = json!(["values"]))]
    pub stream_mode: Value,
    /// Streams the events of nested agents too.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_subgraphs: Option<bool>,
    /// Nodes before which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_before: Value,
    /// Nodes after which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_after: Value,
    /// Settings of the agent. Cannot be combined with `config.configurable`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// Moment at which checkpoints are stored: `sync` before the next step starts, `async` while it
    /// runs, `exit` at the end of the run.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub durability: Option<DurabilityName>,
    /// New input of the thread.
    #[serde(default)]
    #[schema(value_type = Option<StateValuesBody>)]
    pub input: Option<Map<String, Value>>,
}

request_body!(CronPatch);

/// A search of crons.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct CronSearch {
    /// Thread of the crons.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub thread_id: Option<String>,
    /// Assistant of the crons.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub assistant_id: Option<String>,
    /// `true` for crons that fire.
    #[serde(default)]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
    /// Sort key.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_by: Option<CronSortBy>,
    /// Order of the results.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_order: Option<CronSortOrder>,
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
    /// Fields to return.
    #[serde(default)]
    #[schema(value_type = Vec<CronField>, inline)]
    pub select: Option<Vec<String>>,
}

request_body!(CronSearch);

/// A count of crons.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct CronCount {
    /// Thread of the crons.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub thread_id: Option<String>,
    /// Assistant of the crons.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub assistant_id: Option<String>,
    /// `true` for crons that fire.
    #[serde(default)]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Option<Map<String, Value>>,
}

request_body!(CronCount);
