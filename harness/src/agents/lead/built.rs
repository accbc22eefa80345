//! A lead agent that was built for certain options.

use std::sync::Arc;

use crate::agents::subagents::SubagentPool;
use crate::runtime::agent::Agent;

/// A lead agent with its subagents.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) agent: Arc<dyn Agent>,
    /// Subagents, if the options enable them.
    pub(crate) subagents: Option<SubagentPool>,
    /// Names in the run's restriction of tools that are neither tools nor groups.
    pub(crate) unknown_tools: Vec<String>,
}
