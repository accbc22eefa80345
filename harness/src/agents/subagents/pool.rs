//! Pool of a lead agent's subagents, with a limit for concurrently active ones.

use std::sync::Arc;

use indexmap::IndexMap;
use tokio::sync::Semaphore;

use super::kind::SubagentKind;
use crate::runtime::agent::Agent;

/// One subagent, which serves any number of tasks.
#[derive(Debug, Clone)]
pub struct Subagent {
    /// Kind of the subagent.
    pub kind: SubagentKind,
    /// The built agent.
    pub agent: Arc<dyn Agent>,
    /// Name of its model entry.
    pub model: String,
}

/// Subagents, keyed by the names of their kinds.
#[derive(Debug, Clone)]
pub struct SubagentPool {
    subagents: IndexMap<String, Subagent>,
    /// Permits for active subagents, shared by all pools of a configuration; assigned in FIFO
    /// order.
    pub(super) permits: Arc<Semaphore>,
}

impl SubagentPool {
    /// Creates a pool of these subagents; `permits` limits the number of active ones.
    pub fn new(subagents: impl IntoIterator<Item = Subagent>, permits: Arc<Semaphore>) -> Self {
        Self {
            subagents: subagents
                .into_iter()
                .map(|subagent| (subagent.kind.name.clone(), subagent))
                .collect(),
            permits,
        }
    }

    /// Returns the subagent of this kind.
    pub fn get(&self, kind: &str) -> Option<&Subagent> {
        self.subagents.get(kind)
    }

    /// Returns the kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &SubagentKind> {
        self.subagents.values().map(|subagent| &subagent.kind)
    }

    /// `true` if the pool has no subagents.
    pub fn is_empty(&self) -> bool {
        self.subagents.is_empty()
    }
}
