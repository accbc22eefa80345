//! `tool_search`: deferred loading of MCP tools.

use serde::Deserialize;

use super::check::Checker;

/// Presentation of MCP tools to models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolSearchConfig {
    /// Shows models only the names of MCP tools until they search for them.
    pub enabled: bool,
    /// Has no effect: a search always loads the tools that it finds.
    pub auto_promote_top_k: u8,
}

impl Default for ToolSearchConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            auto_promote_top_k: 3,
        }
    }
}

impl ToolSearchConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("auto_promote_top_k", self.auto_promote_top_k, 1..=5);
    }
}
