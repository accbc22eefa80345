//! Crons.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::selection::selection;

/// Action on the run's own thread after its end.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum AfterCronRun {
    /// `delete`.
    Delete,
    /// `keep`.
    Keep,
}

/// A scheduled run.
#[derive(Debug, ToSchema)]
pub struct Cron {
    /// Id of the cron.
    #[schema(format = "uuid")]
    pub cron_id: String,
    /// Id of the assistant.
    #[schema(format = "uuid")]
    pub assistant_id: String,
    /// Id of the thread.
    #[schema(format = "uuid", required = true)]
    pub thread_id: Option<String>,
    /// Owner of the cron.
    #[schema(required = true)]
    pub user_id: Option<String>,
    /// Time after which the cron no longer fires.
    #[schema(format = "date-time", required = true)]
    pub end_time: Option<String>,
    /// Schedule in five fields.
    pub schedule: String,
    /// IANA time zone name.
    #[schema(required = true)]
    pub timezone: Option<String>,
    /// Request of the runs.
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
    /// Time of the next run.
    #[schema(format = "date-time", required = true)]
    pub next_run_date: Option<String>,
    /// Metadata.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Action on the run's own thread after its end.
    #[schema(inline, required = true)]
    pub on_run_completed: Option<AfterCronRun>,
    /// `true` if the cron fires.
    pub enabled: bool,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
}

selection!(
    /// A page of crons.
    Crons of Cron: "A cron, or its selected fields."
);
