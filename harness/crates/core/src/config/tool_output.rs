//! `tool_output`: handling of tool results that are too long for the conversation.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::Checker;

/// Limits of tool results that the model reads. All sizes are in characters; 0 for no limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolOutputConfig {
    /// Enables the limits.
    pub enabled: bool,
    /// Length above which a result is moved to a file.
    pub externalize_min_chars: usize,
    /// Length of the beginning that stays in the conversation.
    pub preview_head_chars: usize,
    /// Length of the end that stays in the conversation.
    pub preview_tail_chars: usize,
    /// Maximum length if no file can be written.
    pub fallback_max_chars: usize,
    /// Length of the beginning that stays in this case.
    pub fallback_head_chars: usize,
    /// Length of the end that stays in this case.
    pub fallback_tail_chars: usize,
    /// Folder of the files, below the thread's outputs.
    pub storage_subdir: String,
    /// Tools whose results are not limited.
    pub exempt_tools: Vec<String>,
    /// Values of `externalize_min_chars` for single tools.
    pub tool_overrides: BTreeMap<String, usize>,
}

impl Default for ToolOutputConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            externalize_min_chars: 12_000,
            preview_head_chars: 2_000,
            preview_tail_chars: 1_000,
            fallback_max_chars: 30_000,
            fallback_head_chars: 8_000,
            fallback_tail_chars: 3_000,
            storage_subdir: ".tool-results".to_owned(),
            exempt_tools: vec!["read_file".to_owned(), "read_file_tool".to_owned()],
            tool_overrides: BTreeMap::new(),
        }
    }
}

impl ToolOutputConfig {
    /// Returns the maximum length of a result of this tool in the conversation; `None` for no
    /// limit.
    pub fn limit(&self, tool: &str) -> Option<usize> {
        let limit = self
            .tool_overrides
            .get(tool)
            .copied()
            .unwrap_or(self.externalize_min_chars);
        (limit > 0 && !self.is_exempt(tool)).then_some(limit)
    }

    /// `true` if the results of this tool are not limited.
    pub fn is_exempt(&self, tool: &str) -> bool {
        self.exempt_tools.iter().any(|exempt| exempt == tool)
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.not_blank("storage_subdir", &self.storage_subdir);
    }
}
