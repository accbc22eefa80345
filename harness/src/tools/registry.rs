//! Registry of one agent's tools.

use std::sync::Arc;

use indexmap::IndexMap;

use super::deferred::DeferredTools;
use super::erased::{DynTool, erase};
use super::tool::Tool;
use crate::models::ToolSchema;

/// Tools by name, in insertion order. The first tool of a name wins.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: IndexMap<String, Arc<dyn DynTool>>,
    deferred: Option<Arc<DeferredTools>>,
}

impl ToolRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a typed tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.add(erase(tool));
        self
    }

    /// Adds an erased tool. If a tool of that name exists, it stays and a warning is logged.
    pub fn add(&mut self, tool: Arc<dyn DynTool>) {
        let name = tool.schema().name.clone();
        if self.tools.contains_key(&name) {
            tracing::warn!(tool = %name, "duplicate tool name, second tool ignored");
            return;
        }
        self.tools.insert(name, tool);
    }

    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn DynTool>> {
        self.tools.get(name)
    }

    /// Names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Retains only the tools for which the predicate returns `true`.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&str) -> bool) {
        self.tools.retain(|name, _| is_wanted(name));
    }

    /// Hides the tools of this catalog from models until a search loads them.
    pub fn defer(&mut self, catalog: Arc<DeferredTools>) {
        self.deferred = Some(catalog);
    }

    /// Returns the catalog of deferred tools.
    pub fn deferred(&self) -> Option<&Arc<DeferredTools>> {
        self.deferred.as_ref()
    }

    /// Names of tools that return untrusted text.
    pub fn foreign(&self) -> impl Iterator<Item = &str> {
        self.tools
            .values()
            .filter(|tool| tool.is_foreign())
            .map(|tool| tool.schema().name.as_str())
    }

    /// Schemas of the tools, as sent to the model.
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
