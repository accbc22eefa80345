//! `tools[]` and `tool_groups[]`: what agents may call, in named groups.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;
use super::unresolved::{MissingVariable, UnresolvedVariable, require_resolved};

/// One tool entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ToolConfig {
    /// The name that models call.
    pub name: String,
    /// The group that agents choose it by.
    pub group: String,
    /// The implementation: a kind such as `sandbox.bash`, or the path of an older configuration.
    #[serde(rename = "use")]
    pub implementation: String,
    /// `$VARIABLE`s of this entry that had no value.
    #[serde(default, rename = "__unresolved")]
    pub unresolved: Vec<UnresolvedVariable>,
    /// Every other key, for the tool.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl ToolConfig {
    /// Refuses an entry that refers to an environment variable without a value.
    pub fn require_resolved(&self) -> Result<(), MissingVariable> {
        require_resolved("tool", &self.name, &self.unresolved)
    }
}

/// A group of tools.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ToolGroupConfig {
    /// The group's name.
    pub name: String,
    /// Every other key.
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
