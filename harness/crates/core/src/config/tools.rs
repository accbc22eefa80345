//! `tools[]` and `tool_groups[]`: tools of agents, in named groups.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;
use super::unresolved::{MissingVariable, UnresolvedVariable, require_resolved};

/// Tool entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ToolConfig {
    /// Name for models.
    pub name: String,
    /// Group by which agents select the tool.
    pub group: String,
    /// Implementation: a kind such as `sandbox.bash`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub implementation: String,
    /// `$VARIABLE` references of this entry without a value.
    #[serde(default, rename = "__unresolved")]
    pub unresolved: Vec<UnresolvedVariable>,
    /// All other keys, which are passed to the tool.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl ToolConfig {
    /// Returns an error if the entry refers to an environment variable without a value.
    pub fn require_resolved(&self) -> Result<(), MissingVariable> {
        require_resolved("tool", &self.name, &self.unresolved)
    }
}

/// Tool group.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ToolGroupConfig {
    /// Name of the group.
    pub name: String,
    /// All other keys.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

pub(super) fn check_all(tools: &[ToolConfig], check: &mut Checker) {
    for (position, tool) in tools.iter().enumerate() {
        check.under(position, |check| {
            check.not_blank("name", &tool.name);
            check.not_blank("group", &tool.group);
            check.not_blank("use", &tool.implementation);
        });
    }
}

pub(super) fn check_groups(groups: &[ToolGroupConfig], check: &mut Checker) {
    for (position, group) in groups.iter().enumerate() {
        check.under(position, |check| check.not_blank("name", &group.name));
    }
}
