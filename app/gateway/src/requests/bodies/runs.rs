//! Bodies that create or cancel runs.

use harness::runtime::runs::{
    DisconnectMode, Durability, IfNotExists, MultitaskStrategy, RunStatus,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::command::Command;
use super::shared::{Config, Metadata};
use super::states::{Checkpoint, StateValuesBody};
use crate::extract::request_body;
use crate::schema::{any_of, changed_object, reference, words};

/// Maximum delay of a run, in seconds: somewhat more than ten years.
pub(crate) const MAX_DELAY: f64 = 10.0 * 366.0 * 24.0 * 60.0 * 60.0;

words! {
    /// Action if the thread of a run does not exist.
    IfThreadMissing(IfNotExists) {
        "create" => IfNotExists::Create,
        "reject" => IfNotExists::Reject,
    }
}

words! {
    /// `true` if the temporary thread of a run is retained.
    OnCompletion(bool) {
        "delete" => false,
        "keep" => true,
    }
}

words! {
    /// Action when the client disconnects.
    OnDisconnect(DisconnectMode) {
        "cancel" => DisconnectMode::Cancel,
        "continue" => DisconnectMode::Continue,
    }
}

words! {
    /// Moment at which checkpoints are stored: `sync` before the next step starts, `async` while it
    /// runs, `exit` at the end of the run.
    DurabilityName(Durability) {
        "sync" => Durability::Sync,
        "async" => Durability::Async,
        "exit" => Durability::Exit,
    }
}

words! {
    /// Action if the thread is busy.
    MultitaskName(MultitaskStrategy) {
        "reject" => MultitaskStrategy::Reject,
        "rollback" => MultitaskStrategy::Rollback,
        "interrupt" => MultitaskStrategy::Interrupt,
        "enqueue" => MultitaskStrategy::Enqueue,
    }
}

impl DurabilityName {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self.0 {
            Durability::Sync => "sync",
            Durability::Async => "async",
            Durability::Exit => "exit",
        }
    }
}

/// A stream mode.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = StreamMode)]
pub enum StreamModeName {
    /// State after each step.
    Values,
    /// Changes of each step.
    Updates,
    /// Messages, with all parts sent so far.
    Messages,
    /// Parts of messages with their metadata.
    #[serde(rename = "messages-tuple")]
    MessagesTuple,
    /// Events of tools.
    Custom,
    /// Events of LangChain.
    Events,
    /// Checkpoints and tasks.
    Debug,
    /// Begin and end of tasks.
    Tasks,
    /// Checkpoints.
    Checkpoints,
}

/// A run without a thread. DeerFlow ignores the platform's options, and rejects those that would
/// change the meaning of a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = StatelessRunCreate)]
pub struct RunCreate {
    /// Action if the thread does not exist.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub if_not_exists: Option<IfThreadMissing>,
    /// Action on the temporary thread after the run.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub on_completion: Option<OnCompletion>,
    /// Allows clients to resume the event stream.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_resumable: Option<bool>,
    /// Keys of expected feedback; without effect.
    #[serde(default)]
    #[schema(nullable = false)]
    pub feedback_keys: Option<Vec<String>>,
    /// Id of an assistant, or name of a graph.
    #[serde(default)]
    #[schema(value_type = String, required = true, examples("lead_agent"))]
    pub assistant_id: Value,
    /// Action if the thread is busy.
    #[serde(default)]
    #[schema(value_type = MultitaskName, inline)]
    pub multitask_strategy: Value,
    /// Delay of the start, in seconds.
    #[serde(default)]
    #[schema(value_type = f64, maximum = 316_224_000)]
    pub after_seconds: Value,
    /// URL that is called when the run ends.
    #[serde(default)]
    #[schema(nullable = false, format = "uri", max_length = 65536)]
    pub webhook: Option<String>,
    /// Stream modes, or a single one.
    #[serde(default)]
    #[schema(value_type = StreamModeNames, inline, default = json!(["values"]))]
    pub stream_mode: Value,
    /// Streams the events of nested agents too.
    #[serde(default)]
    #[schema(nullable = false)]
    pub stream_subgraphs: Option<bool>,
    /// Action when the client disconnects.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub on_disconnect: Option<OnDisconnect>,
    /// Nodes before which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_before: Value,
    /// Nodes after which the run pauses.
    #[serde(default)]
    #[schema(schema_with = nodes)]
    pub interrupt_after: Value,
    /// Any data of the client.
    #[serde(default)]
    #[schema(value_type = Metadata)]
    pub metadata: Option<Map<String, Value>>,
    /// Run configuration.
    #[serde(default)]
    #[schema(value_type = Config)]
    pub config: Option<Map<String, Value>>,
    /// Settings of the agent. Cannot be combined with `config.configurable`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// Checkpoint at which the run begins.
    #[serde(default)]
    #[schema(value_type = Checkpoint)]
    pub checkpoint: Option<Map<String, Value>>,
    /// Id of the checkpoint at which the run begins.
    #[serde(default)]
    #[schema(format = "uuid")]
    pub checkpoint_id: Option<String>,
    /// Answer to an interrupt, or change of the state.
    #[serde(default)]
    #[schema(value_type = Option<Command>)]
    pub command: Option<Map<String, Value>>,
    /// Older form of `durability`.
    #[serde(default)]
    #[schema(nullable = false)]
    pub checkpoint_during: Option<bool>,
    /// Moment at which checkpoints are stored: `sync` before the next step starts, `async` while it
    /// runs, `exit` at the end of the run.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub durability: Option<DurabilityName>,
    /// New input of the thread; null resumes its pending tasks.
    #[serde(default)]
    #[schema(value_type = Option<StateValuesBody>)]
    pub input: Option<Map<String, Value>>,
    /// Action if the process of the run ends unexpectedly: `resume` or `fail`.
    #[serde(default)]
    #[schema(ignore)]
    pub recovery: Value,
}

request_body!(
    RunCreate,
    platform_only: [
        "if_not_exists",
        "on_completion",
        "stream_resumable",
        "feedback_keys",
        "after_seconds",
        "checkpoint_during",
        "durability",
    ],
    // DeerFlow requires no assistant and has no queue.
    checked_later: ["assistant_id", "multitask_strategy"]
);

/// A run on a thread: a [`RunCreate`] without the option for temporary threads.
#[derive(Debug, Default, Deserialize)]
pub struct ThreadRunCreate {}

impl PartialSchema for ThreadRunCreate {
    fn schema() -> RefOr<Schema> {
        changed_object(RunCreate::schema(), |object| {
            object.properties.shift_remove("on_completion");
            object.description = Some("A run on a thread.".to_owned());
        })
    }
}

impl ToSchema for ThreadRunCreate {
    fn name() -> std::borrow::Cow<'static, str> {
        "RunCreate".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        RunCreate::schemas(schemas);
    }
}

request_body!(ThreadRunCreate);

/// Several runs.
#[derive(Debug)]
pub struct RunBatch;

impl PartialSchema for RunBatch {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(reference::<RunCreate>())
            .min_items(Some(1))
            .max_items(Some(1000))
            .into()
    }
}

impl ToSchema for RunBatch {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        crate::schema::collect::<RunCreate>(schemas);
    }
}

/// Stream modes, or a single one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StreamModeNames {
    /// One mode.
    One(StreamModeName),
    /// Several modes.
    Many(Vec<StreamModeName>),
}

/// Schema of `*` or of a list of nodes.
pub(super) fn nodes() -> Schema {
    let all = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["*"]));
    let named = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
    Schema::AnyOf(
        any_of([all.into(), named.into()])
            .description(Some("All nodes, or the named ones."))
            .build(),
    )
}

words! {
    /// Status of the runs to cancel; `None` selects every status.
    CancelStatus(Option<RunStatus>) {
        "pending" => Some(RunStatus::Pending),
        "running" => Some(RunStatus::Running),
        "all" => None,
    }
}

/// Runs of a thread, or all of the caller's runs with a status.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct RunsCancel {
    /// Runs to cancel; all active ones of the thread if absent.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid", max_items = 1000)]
    pub run_ids: Option<Vec<String>>,
    /// Thread of the runs.
    #[serde(default)]
    #[schema(nullable = false, format = "uuid")]
    pub thread_id: Option<String>,
    /// Status of the runs.
    #[serde(default)]
    #[schema(inline, nullable = false)]
    pub status: Option<CancelStatus>,
}

request_body!(RunsCancel);
