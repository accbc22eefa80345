//! What the runtime is put together from: ports, limits, and the set of tasks it spawns into.

use std::sync::Arc;
use std::time::Duration;

use super::bell::NodeBell;
use super::observer::RunObserver;
use super::spec::Recovery;
use super::store::{
    NodeStore, RunCommitStore, RunCreateStore, RunDeleteStore, RunEventStore, RunQueryStore,
    ToolLedger,
};
use crate::clock::Clock;
use crate::config::{AppConfig, RunRecovery};
use crate::ids::IdSource;
use crate::runtime::agent::AgentResolver;
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::stream_bridge::StreamBridge;
use crate::runtime::tasks::Tasks;

/// The runtime's ports. Every field is an implementation somebody else chose.
#[derive(Debug, Clone)]
pub struct RuntimeParts {
    /// Carries events to viewers.
    pub bridge: Arc<dyn StreamBridge>,
    /// Reads and writes checkpoints.
    pub checkpointer: Arc<dyn Checkpointer>,
    /// Admits runs.
    pub create: Arc<dyn RunCreateStore>,
    /// Writes what runs reach.
    pub commit: Arc<dyn RunCommitStore>,
    /// Reads runs.
    pub query: Arc<dyn RunQueryStore>,
    /// Deletes runs.
    pub delete: Arc<dyn RunDeleteStore>,
    /// Reads what former attempts wrote down of their calls.
    pub ledger: Arc<dyn ToolLedger>,
    /// Knows which processes live.
    pub nodes: Arc<dyn NodeStore>,
    /// Tells other processes over the same store to look.
    pub bell: Arc<dyn NodeBell>,
    /// Reads the journal.
    pub events: Arc<dyn RunEventStore>,
    /// Finds agents.
    pub agents: Arc<dyn AgentResolver>,
    /// Hears of lifecycle events.
    pub observer: Arc<dyn RunObserver>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
    /// Where tasks live.
    pub tasks: Tasks,
}

/// Bounds that hold for every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Super-steps when the request names no usable number.
    pub default_recursion_limit: u64,
    /// Most super-steps a request may ask for.
    pub max_recursion_limit: u64,
    /// Longest life of a run.
    pub wall_clock: Duration,
    /// How long this process is taken to live when it says nothing, where others share its store.
    pub lease: Duration,
    /// What becomes of a run whose process died.
    pub recovery: Recovery,
    /// How many processes may die with a run before it ends.
    pub max_attempts: u32,
    /// Most runs that may wait on one thread.
    pub max_enqueued: usize,
    /// Longest silence of an agent, while it waits for no tool and no person.
    pub idle: Duration,
    /// How long a finished run's events stay in the bridge.
    pub stream_retention: Duration,
    /// Longest trace text in the journal, in characters.
    pub max_trace_chars: usize,
    /// Most messages that the input of one run may bring.
    pub max_input_messages: usize,
    /// Most messages that an input may make a thread hold. What agents add is not bounded by it.
    pub max_thread_messages: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            default_recursion_limit: 100,
            max_recursion_limit: 1_000,
            wall_clock: Duration::from_secs(24 * 60 * 60),
            lease: Duration::from_secs(10),
            recovery: Recovery::Resume,
            max_attempts: 3,
            max_enqueued: 16,
            idle: Duration::from_secs(10 * 60),
            stream_retention: Duration::from_secs(24 * 60 * 60),
            max_trace_chars: 10_240,
            max_input_messages: 10_000,
            max_thread_messages: 100_000,
        }
    }
}

impl From<&AppConfig> for RunLimits {
    fn from(config: &AppConfig) -> Self {
        Self {
            max_recursion_limit: config.max_recursion_limit,
            wall_clock: config.runs.wall_clock_limit(),
            lease: Duration::from_secs(config.run_ownership.lease_seconds),
            recovery: match config.run_ownership.recovery {
                RunRecovery::Resume => Recovery::Resume,
                RunRecovery::Fail => Recovery::Fail,
            },
            max_attempts: config.run_ownership.max_attempts,
            max_enqueued: config.runs.max_enqueued_per_thread,
            idle: config.runs.idle_limit(),
            stream_retention: Duration::from_secs(config.stream_bridge.stream_ttl_seconds),
            max_trace_chars: config.run_events.max_trace_content,
            max_input_messages: config.runs.max_messages_per_request,
            max_thread_messages: config.runs.max_messages_per_thread,
            ..Self::default()
        }
    }
}
