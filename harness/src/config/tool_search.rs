//! `tool_search`: whether models look for tools of MCP servers before they see them.

use serde::Deserialize;

use super::check::Checker;

/// How tools of MCP servers are shown to models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolSearchConfig {
    /// Whether a model sees their names only, until it has looked for them.
    pub enabled: bool,
    /// How many tools a question's own words may load at most.
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
