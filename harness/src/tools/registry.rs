//! The tools of one agent, by name.

use std::sync::Arc;

use indexmap::IndexMap;

use super::deferred::DeferredTools;
use super::erased::{DynTool, erase};
use super::tool::Tool;
use crate::models::ToolSchema;

/// Tools by name, in the order they were added. The first of a name wins.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: IndexMap<String, Arc<dyn DynTool>>,
    deferred: Option<Arc<DeferredTools>>,
}

impl ToolRegistry {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a typed tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.add(erase(tool));
        self
    }

    /// Adds an erased tool. A name that is taken keeps its tool, and the log says so.
    pub fn add(&mut self, tool: Arc<dyn DynTool>) {
        let name = tool.schema().name.clone();
        if self.tools.contains_key(&name) {
            tracing::warn!(tool = %name, "a second tool of this name is left out");
            return;
        }
        self.tools.insert(name, tool);
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn DynTool>> {
        self.tools.get(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Keeps the tools whose names are wanted.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&str) -> bool) {
        self.tools.retain(|name, _| is_wanted(name));
    }

    /// Hides the tools of this catalog from models until a thread has found them.
    pub fn defer(&mut self, catalog: Arc<DeferredTools>) {
        self.deferred = Some(catalog);
    }

    /// The tools that threads have to find first.
    pub fn deferred(&self) -> Option<&Arc<DeferredTools>> {
        self.deferred.as_ref()
    }

    /// The names of tools whose results strangers wrote.
    pub fn foreign(&self) -> impl Iterator<Item = &str> {
        self.tools
            .values()
            .filter(|tool| tool.is_foreign())
            .map(|tool| tool.schema().name.as_str())
    }

    /// What a model is told of the tools.
    pub fn schemas(&self) -> Arc<[ToolSchema]> {
        self.tools
            .values()
            .map(|tool| tool.schema().clone())
            .collect()
    }
}

impl Extend<Arc<dyn DynTool>> for ToolRegistry {
    fn extend<I: IntoIterator<Item = Arc<dyn DynTool>>>(&mut self, tools: I) {
        tools.into_iter().for_each(|tool| self.add(tool));
    }
}
