//! Port for tools that appear and disappear while the process runs.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::erased::DynTool;

/// Snapshot of the tools of a source.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    version: u64,
    tools: Vec<Arc<dyn DynTool>>,
}

impl ToolSet {
    /// Creates a set with the source's version; version 0 is the empty set.
    pub fn new(version: u64, tools: Vec<Arc<dyn DynTool>>) -> Self {
        Self { version, tools }
    }

    /// Version of the set. Sets of one source with the same version contain the same tools.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the set with the tools whose names fulfil the predicate, of the same version.
    pub(crate) fn filtered(&self, mut is_wanted: impl FnMut(&str) -> bool) -> Self {
        let tools = self.tools.iter();
        Self {
            version: self.version,
            tools: tools
                .filter(|tool| is_wanted(&tool.schema().name))
                .cloned()
                .collect(),
        }
    }

    /// The tools, in a stable order.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }
}

/// Source of tools that are not known at process start.
///
/// It is queried when an agent is built for a run; the agent uses that set until the run ends. A
/// source that cannot reach a server omits that server's tools: the call returns within seconds and
/// never fails.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use async_trait::async_trait;
/// use deerflow_harness::tools::{ToolSet, ToolSource};
///
/// /// Tools that the program replaces while it runs.
/// #[derive(Debug, Default)]
/// struct Replaceable(Mutex<Arc<ToolSet>>);
///
/// #[async_trait]
/// impl ToolSource for Replaceable {
///     async fn tools(&self) -> Arc<ToolSet> {
///         self.0.lock().unwrap().clone()
///     }
/// }
///
/// let source = Replaceable::default();
/// *source.0.lock().unwrap() = Arc::new(ToolSet::new(1, vec![]));
/// ```
#[async_trait]
pub trait ToolSource: Send + Sync + fmt::Debug + 'static {
    /// Returns the tools that are available now.
    async fn tools(&self) -> Arc<ToolSet>;
}
