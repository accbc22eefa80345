//! The port of tools that come and go while the process lives.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::erased::DynTool;

/// The tools of a source at one time.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    version: u64,
    tools: Vec<Arc<dyn DynTool>>,
}

impl ToolSet {
    /// Tools under the source's version of them; 0 is for the empty set.
    pub fn new(version: u64, tools: Vec<Arc<dyn DynTool>>) -> Self {
        Self { version, tools }
    }

    /// Sets of one source and version have the same tools.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tools, in a stable order.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }
}

/// Gives agents tools that nobody knows when the process starts.
///
/// It is asked whenever an agent is put together for a run, and an agent keeps what it was given. A source that cannot reach
/// something leaves its tools out: the answer comes within seconds, whatever happens, and never fails.
#[async_trait]
pub trait ToolSource: Send + Sync + fmt::Debug + 'static {
    /// The tools there are now.
    async fn tools(&self) -> Arc<ToolSet>;
}
