//! Request of a run. The compatibility rules of the API are applied before a request is built.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::presentation::RunPresentation;
use super::request_key::RequestKey;
use super::stream_modes::{StreamMode, StreamModes};
use super::ttl::ThreadTtl;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

/// Request to run an agent on a thread. Its serialized form is stored, and queued or orphaned runs
/// are started from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRequest {
    /// Thread of the run and its lifetime.
    pub scope: RunScope,
    /// Lifetime of the thread if it is created for this run and is not temporary; unlimited if
    /// absent. Not stored: a queued run already has its thread.
    #[serde(skip)]
    pub thread_ttl: Option<ThreadTtl>,
    /// Id of the run, if the caller chose one.
    pub run_id: Option<RunId>,
    /// Name of the assistant.
    pub assistant: String,
    /// Input of the run.
    pub input: RunInput,
    /// Limits and options of the run.
    pub config: RunConfig,
    /// Metadata that clients see. Stored in the run's record, not in the request.
    #[serde(skip)]
    pub metadata: Map<String, Value>,
    /// Kinds of events to stream.
    pub stream_modes: StreamModes,
    /// `true` to stream events of nested graphs too.
    pub stream_subgraphs: bool,
    /// Presentation of the run to its client. Its keys are stored with those of the request.
    #[serde(flatten)]
    pub presentation: RunPresentation,
    /// `true` to retain the text of an interrupted answer in the thread, as DeerFlow does and
    /// LangGraph Platform does not. Not part of the presentation: it decides which state the next
    /// run of the thread starts from.
    pub keep_partial: bool,
    /// Durability of checkpoints.
    pub durability: Durability,
    /// Nodes to stop before.
    pub interrupt_before: NodeSelector,
    /// Nodes to stop after.
    pub interrupt_after: NodeSelector,
    /// Strategy if the thread is busy.
    pub multitask: MultitaskStrategy,
    /// Delay before the run may start.
    pub delay: Duration,
    /// Recovery if the process of the run dies; the configured one if absent.
    #[serde(default)]
    pub recovery: Option<Recovery>,
    /// URL that is called when the run ends.
    pub webhook: Option<String>,
    /// Idempotency key of the request.
    #[serde(default)]
    pub request: Option<RequestKey>,
    /// Behaviour if the creating client disconnects.
    pub on_disconnect: DisconnectMode,
    /// Checkpoint to start from, if not the newest.
    pub checkpoint: Option<CheckpointRef>,
}

impl RunRequest {
    /// Creates a request to send a message to an assistant. The thread is created if it does not
    /// exist; tokens and states are streamed; all other settings have their defaults.
    pub fn ask(assistant: impl Into<String>, thread_id: ThreadId, message: Message) -> Self {
        let scope = RunScope::Stateful {
            thread_id,
            if_not_exists: IfNotExists::Create,
        };
        Self::plain(
            assistant.into(),
            scope,
            RunInput::Update(StateUpdate::messages([message])),
        )
    }

    /// Creates a request to answer the open interrupts of an existing thread. All other settings
    /// are as for [`RunRequest::ask`].
    pub fn answer(assistant: impl Into<String>, thread_id: ThreadId, answers: Value) -> Self {
        let scope = RunScope::Stateful {
            thread_id,
            if_not_exists: IfNotExists::Reject,
        };
        Self::plain(assistant.into(), scope, RunInput::Resume(answers))
    }

    /// Returns the idempotency key of the request.
    pub fn idempotency_key(&self) -> Option<&RequestKey> {
        self.request.as_ref()
    }

    /// Returns the requested entry of the model configuration.
    pub fn model_name(&self) -> Option<&str> {
        self.config
            .options
            .get("model_name")
            .and_then(Value::as_str)
    }

    /// Returns the lifetime of the thread that is created for this run, if it is limited and the
    /// thread is not temporary.
    pub fn created_thread_ttl(&self) -> Option<ThreadTtl> {
        self.thread_ttl.filter(|_| !self.scope.is_temporary())
    }

    fn plain(assistant: String, scope: RunScope, input: RunInput) -> Self {
        Self {
            scope,
            thread_ttl: None,
            run_id: None,
            assistant,
            input,
            config: RunConfig::default(),
            metadata: Map::new(),
            stream_modes: [StreamMode::MessagesTuple, StreamMode::Values]
                .into_iter()
                .collect(),
            stream_subgraphs: false,
            presentation: RunPresentation::default(),
            keep_partial: true,
            durability: Durability::Async,
            interrupt_before: NodeSelector::None,
            interrupt_after: NodeSelector::None,
            multitask: MultitaskStrategy::Reject,
            delay: Duration::ZERO,
            recovery: None,
            webhook: None,
            request: None,
            on_disconnect: DisconnectMode::Continue,
            checkpoint: None,
        }
    }
}

/// Thread of a run and its lifetime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunScope {
    /// A thread that remains after the run.
    Stateful {
        /// Id of the thread.
        thread_id: ThreadId,
        /// Behaviour if the thread does not exist.
        if_not_exists: IfNotExists,
    },
    /// A thread created for this run.
    Stateless {
        /// `true` to delete the thread when the run ends.
        temporary: bool,
    },
}

impl RunScope {
    /// Returns the behaviour if the thread does not exist. The thread of a stateless run is always
    /// created.
    pub fn if_not_exists(&self) -> IfNotExists {
        match self {
            Self::Stateful { if_not_exists, .. } => *if_not_exists,
            Self::Stateless { .. } => IfNotExists::Create,
        }
    }

    /// Reports whether the thread is deleted when the run ends.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Stateless { temporary: true })
    }
}

/// Behaviour if the thread does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfNotExists {
    /// The run is rejected.
    #[default]
    Reject,
    /// The thread is created.
    Create,
}

/// Input of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RunInput {
    /// An update of the state. An empty update runs the agent without new input.
    Update(StateUpdate),
    /// Answers to open interrupts.
    Resume(Value),
    /// No input: the thread resumes where it stopped.
    Continue,
    /// A command that changes the state or the next nodes before the thread resumes.
    Command(ThreadCommand),
}

/// Command of a client. It is applied in this order: update, answers, nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadCommand {
    /// Answers to open interrupts. A JSON null is an answer.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_some"
    )]
    pub resume: Option<Value>,
    /// Update of the state.
    pub update: StateUpdate,
    /// Nodes to execute, in order.
    pub goto: Vec<GotoTarget>,
}

/// Deserializes a present value, including JSON null, as `Some`.
fn deserialize_some<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Node to execute next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GotoTarget {
    /// Name of the node.
    pub node: String,
    /// Input that replaces the state for this node: messages for the model, calls for the tools.
    #[serde(default)]
    pub input: Option<Value>,
}

/// Recovery of a run whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// The run resumes from its last checkpoint.
    #[default]
    Resume,
    /// The run ends as failed.
    Fail,
}

/// Durability of a run's checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Each checkpoint is durable before the next step starts.
    Sync,
    /// Each checkpoint is written while the next step runs.
    #[default]
    Async,
    /// Only the last checkpoint is written, at the end of the run.
    Exit,
}

impl RunInput {
    /// Returns the first human message of the input.
    pub fn first_human(&self) -> Option<&Message> {
        match self {
            Self::Update(update) | Self::Command(ThreadCommand { update, .. }) => {
                update.messages.iter().find(|message| message.is_human())
            }
            Self::Resume(_) | Self::Continue => None,
        }
    }
}

/// Limits and options of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunConfig {
    /// Requested maximum number of super-steps; the planner clamps it.
    pub recursion_limit: Option<u64>,
    /// `config.configurable` merged with `context`, which takes precedence. Keys that the server
    /// owns are removed.
    pub options: Map<String, Value>,
    /// `config.tags`.
    pub tags: Vec<String>,
}

/// Reference to a checkpoint to start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRef {
    /// Id of the checkpoint.
    pub checkpoint_id: CheckpointId,
}

/// A set of node names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum NodeSelector {
    /// No node.
    #[default]
    None,
    /// Every node.
    All,
    /// The nodes of these names.
    Named(Vec<String>),
}

impl NodeSelector {
    /// Reports whether the selector contains `node`.
    pub fn selects(&self, node: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == node),
        }
    }
}

/// Strategy for a new run on a busy thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MultitaskStrategy {
    /// The new run is rejected.
    #[default]
    Reject,
    /// The earlier run is interrupted; its progress is retained.
    Interrupt,
    /// The earlier run is rolled back.
    Rollback,
    /// The new run is queued behind the earlier ones.
    Enqueue,
}

impl MultitaskStrategy {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::Rollback => "rollback",
            Self::Enqueue => "enqueue",
        }
    }
}

/// Effect of a cancel on the progress of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CancelAction {
    /// The progress is retained, including the text streamed so far.
    Interrupt,
    /// The thread is restored to its state before the run.
    Rollback,
}

/// Behaviour if the creating client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisconnectMode {
    /// The run is cancelled.
    Cancel,
    /// The run continues.
    #[default]
    Continue,
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
