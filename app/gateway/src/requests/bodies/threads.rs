//! Bodies about rows of threads.

use deerflow_domain::threads::ThreadSort;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::command::Command;
use super::shared::Metadata;
use crate::extract::request_body;
use crate::schema::{any_of, limited_object, words};

words! {
    /// `true` if an existing thread or assistant is returned instead of an error.
    IfExists(bool) {
        "raise" => false,
        "do_nothing" => true,
    }
}

words! {
    /// Sort key of threads.
    ThreadSortBy(ThreadSort) {
        "updated_at" => ThreadSort::UpdatedAt,
        "state_updated_at" => ThreadSort::StateUpdatedAt,
        "created_at" => ThreadSort::CreatedAt,
        "thread_id" => ThreadSort::ThreadId,
        "status" => ThreadSort::Status,
    }
}

words! {
    /// `true` if the order is ascending.
    SortOrder(bool) {
        "asc" => true,
        "desc" => false,
        "ASC" => true,
        "DESC" => false,
    }
}

words! {
    /// Field of a thread.
    ThreadField(()) {
        "thread_id" => (),
        "created_at" => (),
        "updated_at" => (),
        "state_updated_at" => (),
        "metadata" => (),
        "config" => (),
        "context" => (),
        "status" => (),
        "values" => (),
        "interrupts" => (),
        "error" => (),
    }
}

words! {
    /// `true` if only the last state of a thread is retained.
    PruneStrategy(bool) {
        "delete" => false,
        "keep_latest" => true,
    }
}

/// Status of a thread.
#[derive(Debug, ToSchema)]
#[schema(as = ThreadStatus, rename_all = "snake_case")]
pub enum ThreadStatusName {
    /// No run is active.
    Idle,
    /// A run is active or queued.
    Busy,
    /// The last run was interrupted.
    Interrupted,
    /// The last run failed.
    Error,
}

/// Schema of a time to live: minutes alone, or with the action at the expiry.
fn ttl() -> Schema {
    let minutes = ObjectBuilder::new()
        .schema_type(Type::Number)
        .exclusive_minimum(Some(0))
        .maximum(Some(52_704_000));
    Schema::AnyOf(
        any_of([minutes.into(), TtlStrategy::schema()])
            .description(Some("Time to live after the last change, in minutes."))
            .build(),
    )
}

/// Time to live with the action at the expiry.
#[derive(Debug, ToSchema)]
pub struct TtlStrategy {
    /// Minutes.
    #[schema(nullable = false, exclusive_minimum = 0, maximum = 52_704_000)]
    pub ttl: Option<f64>,
    /// Action at the expiry.
    #[schema(inline, nullable = false)]
    pub strategy: Option<PruneStrategy>,
}

/// A new thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadCreate {
    /// Id of the resource; generated if absent.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub thread_id: Option<String>,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Name of the agent, for DeerFlow's threads.
    #[serde(default)]
    #[schema(ignore)]
    pub assistant_id: Value,
    /// Action if the id already exists.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub if_exists: Option<IfExists>,
    /// Time to live after the last change, in minutes.
    #[serde(default)]
    #[schema(schema_with = ttl)]
    pub ttl: Value,
    /// Updates that create the first state.
    #[serde(default)]
    #[schema(value_type = Vec<Superstep>, inline)]
    pub supersteps: Value,
}

request_body!(ThreadCreate, platform_only: ["if_exists", "ttl", "supersteps"]);

/// A step of a thread's first state.
#[derive(Debug, ToSchema)]
pub struct Superstep {
    /// Updates of the step.
    #[schema(inline)]
    pub updates: Vec<StepUpdate>,
}

/// An update of a step.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct StepUpdate {
    /// Node that the update is attributed to.
    #[serde(default)]
    #[schema(required = true)]
    pub as_node: String,
    /// Channel values.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub values: Option<Map<String, Value>>,
    /// Values and target nodes, instead of `values`.
    #[serde(default)]
    #[schema(value_type = Option<Command>)]
    pub command: Option<Map<String, Value>>,
}

request_body!(StepUpdate);

/// A change of a thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadPatch {
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Time to live after the last change, in minutes.
    #[serde(default)]
    #[schema(schema_with = ttl)]
    pub ttl: Value,
}

request_body!(ThreadPatch, platform_only: ["ttl"]);

/// A search of threads.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadSearch {
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(schema_with = metadata_filter)]
    pub metadata: Option<Map<String, Value>>,
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
    /// Ids of the threads.
    #[serde(default)]
    #[schema(format = "uuid", max_items = 10000)]
    pub ids: Option<Vec<String>>,
    /// Status of the threads.
    #[serde(default)]
    #[schema(value_type = ThreadStatusName)]
    pub status: Value,
    /// Sort key.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_by: Option<ThreadSortBy>,
    /// Order of the results.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub sort_order: Option<SortOrder>,
    /// Values that must match.
    #[serde(default)]
    #[schema(schema_with = values_filter)]
    pub values: Value,
    /// Fields to return.
    #[serde(default)]
    #[schema(value_type = Vec<ThreadField>, inline)]
    pub select: Option<Vec<String>>,
    /// Values to extract from each thread, by alias.
    #[serde(default)]
    #[schema(schema_with = extracted_paths)]
    pub extract: Option<Map<String, Value>>,
}

request_body!(
    ThreadSearch,
    platform_only: ["select", "extract"],
    // Clients may send older names of statuses, and DeerFlow's clients an empty filter.
    checked_later: ["status", "values"]
);

/// A count of threads.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadCount {
    /// Ids of the threads.
    #[serde(default)]
    #[schema(format = "uuid", max_items = 10000)]
    pub ids: Option<Vec<String>>,
    /// Metadata entries that must match.
    #[serde(default)]
    #[schema(schema_with = metadata_filter)]
    pub metadata: Option<Map<String, Value>>,
    /// Values that must match.
    #[serde(default)]
    #[schema(schema_with = values_filter)]
    pub values: Value,
    /// Status of the threads.
    #[serde(default)]
    #[schema(value_type = ThreadStatusName)]
    pub status: Value,
}

request_body!(ThreadCount);

fn metadata_filter() -> ObjectBuilder {
    limited_object(100, "Metadata entries that must match.")
}

fn values_filter() -> ObjectBuilder {
    limited_object(100, "Values that must match.")
}

fn extracted_paths() -> ObjectBuilder {
    let paths = "Values to extract from each thread, by alias: paths such as `metadata.owner` or `values.messages[-1].content`.";
    let text = ObjectBuilder::new().schema_type(Type::String);
    limited_object(10, paths).additional_properties(Some(RefOr::<Schema>::from(text)))
}

/// Threads to remove.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadPrune {
    /// Ids of the threads.
    #[serde(default)]
    #[schema(required = true, format = "uuid")]
    pub thread_ids: Vec<String>,
    /// Deletes the threads, or only their history except the last state.
    #[serde(default)]
    #[schema(value_type = PruneStrategy, inline)]
    pub strategy: Value,
}

request_body!(
    ThreadPrune,
    // DeerFlow has only one strategy.
    checked_later: ["strategy"]
);
