//! What a caller asks for. Every compatibility rule of the wire has been applied before a spec exists.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::RequestKey;
use super::ttl::ThreadTtl;
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::messages::Message;
use crate::state::StateUpdate;

/// A request to advance a thread. Written down, it is what a run that waits is started from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSpec {
    /// On which thread, and what becomes of it.
    pub scope: RunScope,
    /// How long the thread stays, if it is made for this run and is not temporary; for ever when absent. A run that waits has its
    /// thread already.
    #[serde(skip)]
    pub thread_ttl: Option<ThreadTtl>,
    /// The run's id, when the caller chose one.
    pub run_id: Option<RunId>,
    /// The assistant's name.
    pub assistant: String,
    /// What is new.
    pub input: RunInput,
    /// Limits and options.
    pub config: RunConfig,
    /// Stored with the run and shown to clients; the run's record has it.
    #[serde(skip)]
    pub metadata: Map<String, Value>,
    /// Which events are wanted.
    pub stream_modes: StreamModes,
    /// Whether events of nested graphs are wanted.
    pub stream_subgraphs: bool,
    /// Whether `messages` viewers get the human input back, as DeerFlow's web UI expects and the platform does not.
    pub echo_input: bool,
    /// Whether `messages` viewers get the run's metadata with every message, as the platform's do.
    #[serde(default)]
    pub describe_messages: bool,
    /// Whether the text of an answer that was cut off stays in the thread, as DeerFlow's users expect and the platform's do not.
    pub keep_partial: bool,
    /// When checkpoints become durable.
    pub durability: Durability,
    /// Stop before these nodes.
    pub interrupt_before: NodeSelector,
    /// Stop after these nodes.
    pub interrupt_after: NodeSelector,
    /// What happens when the thread is busy.
    pub multitask: MultitaskStrategy,
    /// How long the run waits before it may begin.
    pub delay: Duration,
    /// What becomes of it when its process dies, if not what the installation says.
    #[serde(default)]
    pub recovery: Option<Recovery>,
    /// Where the run's end is told.
    pub webhook: Option<String>,
    /// What the request is known by when it comes again.
    #[serde(default)]
    pub request: Option<RequestKey>,
    /// What happens when the creating client goes away.
    pub on_disconnect: DisconnectMode,
    /// Start from this checkpoint instead of the newest.
    pub checkpoint: Option<CheckpointRef>,
    /// The request as clients see it again, without secrets; the run's record has it.
    #[serde(skip)]
    pub kwargs: Value,
}

impl RunSpec {
    /// A message to an assistant on a thread that is made when it is new, followed by tokens and states. Everything else is as
    /// callers get it who ask for nothing.
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

    /// Answers to the open questions of a thread, which has to be there; everything else as [`RunSpec::ask`] has it.
    pub fn answer(assistant: impl Into<String>, thread_id: ThreadId, answers: Value) -> Self {
        let scope = RunScope::Stateful {
            thread_id,
            if_not_exists: IfNotExists::Reject,
        };
        Self::plain(assistant.into(), scope, RunInput::Resume(answers))
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
            echo_input: false,
            describe_messages: false,
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
            kwargs: Value::Null,
        }
    }
}

/// Stateful or stateless, and what becomes of the thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunScope {
    /// On a thread that stays.
    Stateful {
        /// The thread.
        thread_id: ThreadId,
        /// What happens when there is no such thread.
        if_not_exists: IfNotExists,
    },
    /// On a thread made for this run.
    Stateless {
        /// Whether the thread is deleted when the run ends.
        temporary: bool,
    },
}

/// What happens when the thread does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfNotExists {
    /// The run is refused.
    #[default]
    Reject,
    /// The thread is made.
    Create,
}

/// What is new to the thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RunInput {
    /// An update to the state; an empty one runs the agent with nothing new.
    Update(StateUpdate),
    /// Answers to open questions.
    Resume(Value),
    /// Nothing: go on where the thread stopped.
    Continue,
    /// Changes of where the thread stands, and then on.
    Command(RunCommand),
}

/// What a client wants of a thread besides answers alone: reduced, answered and visited, in this order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCommand {
    /// Answers to open questions; null is an answer.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    pub resume: Option<Value>,
    /// Changes to the state.
    pub update: StateUpdate,
    /// Nodes to go to, one after the other.
    pub goto: Vec<Visit>,
}

/// A value that is there, null or not.
fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// A node to go to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The node.
    pub node: String,
    /// What it works on instead of the state: messages for the model, calls for the tools.
    #[serde(default)]
    pub input: Option<Value>,
}

/// What becomes of a run whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// It goes on where its last checkpoint stands.
    #[default]
    Resume,
    /// It ends as an error.
    Fail,
}

/// When a run's checkpoints become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Each before the next step begins.
    Sync,
    /// Each while the next step is under way.
    #[default]
    Async,
    /// Only the last, at the end of the run.
    Exit,
}

impl RunInput {
    /// The first human message of the input.
    pub fn first_human(&self) -> Option<&Message> {
        match self {
            Self::Update(update) | Self::Command(RunCommand { update, .. }) => {
                update.messages.iter().find(|message| message.is_human())
            }
            Self::Resume(_) | Self::Continue => None,
        }
    }
}

/// Limits and options of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunConfig {
    /// Most super-steps; the planner clamps it.
    pub recursion_limit: Option<u64>,
    /// `config.configurable` and `context` merged, context winning; server-owned keys already stripped.
    pub options: Map<String, Value>,
    /// `config.tags`.
    pub tags: Vec<String>,
}

/// A checkpoint to start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRef {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
}

/// A set of node names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum NodeSelector {
    /// None.
    #[default]
    None,
    /// Every node.
    All,
    /// These.
    Named(Vec<String>),
}

impl NodeSelector {
    /// Whether `node` is meant.
    pub fn selects(&self, node: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == node),
        }
    }
}

/// What happens to a second run on a busy thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MultitaskStrategy {
    /// It is refused.
    #[default]
    Reject,
    /// The first is interrupted; what it finished stays.
    Interrupt,
    /// The first is undone.
    Rollback,
    /// It waits until all before it are over.
    Enqueue,
}

impl MultitaskStrategy {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::Rollback => "rollback",
            Self::Enqueue => "enqueue",
        }
    }
}

/// What a cancel leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CancelAction {
    /// What was finished stays, with the text streamed so far.
    Interrupt,
    /// The thread returns to where it was before the run.
    Rollback,
}

/// What the creating client's going away means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisconnectMode {
    /// The run is cancelled.
    Cancel,
    /// The run goes on.
    #[default]
    Continue,
}

/// One granularity of streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamMode {
    /// The whole state after each step.
    Values,
    /// What each node wrote.
    Updates,
    /// Accumulated messages.
    Messages,
    /// Message fragments with metadata.
    MessagesTuple,
    /// Payloads of tools and middlewares.
    Custom,
    /// Callback-style events.
    Events,
    /// Starts and ends of tasks.
    Tasks,
    /// Each checkpoint.
    Checkpoints,
    /// Tasks and checkpoints in one envelope.
    Debug,
}

impl StreamMode {
    /// All modes.
    pub const ALL: [Self; 9] = [
        Self::Values,
        Self::Updates,
        Self::Messages,
        Self::MessagesTuple,
        Self::Custom,
        Self::Events,
        Self::Tasks,
        Self::Checkpoints,
        Self::Debug,
    ];

    /// The word clients ask for it with.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::MessagesTuple => "messages-tuple",
            Self::Custom => "custom",
            Self::Events => "events",
            Self::Tasks => "tasks",
            Self::Checkpoints => "checkpoints",
            Self::Debug => "debug",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// A set of modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamModes(u16);

impl StreamModes {
    /// Whether `mode` is in the set.
    pub fn has(self, mode: StreamMode) -> bool {
        self.0 & (1 << mode as u16) != 0
    }

    /// The modes of the set.
    pub fn iter(self) -> impl Iterator<Item = StreamMode> {
        StreamMode::ALL
            .into_iter()
            .filter(move |mode| self.has(*mode))
    }
}

impl FromIterator<StreamMode> for StreamModes {
    fn from_iter<I: IntoIterator<Item = StreamMode>>(modes: I) -> Self {
        Self(
            modes
                .into_iter()
                .fold(0, |set, mode| set | (1 << mode as u16)),
        )
    }
}
