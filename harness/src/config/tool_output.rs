//! `tool_output`: what becomes of results that are too long for a conversation.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::Checker;

/// How much of a tool's result the model reads. All sizes are in characters; 0 means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolOutputConfig {
    /// Whether long results are kept out of the conversation.
    pub enabled: bool,
    /// A longer result goes to a file.
    pub externalize_min_chars: usize,
    /// How much of its beginning is still shown.
    pub preview_head_chars: usize,
    /// How much of its end is still shown.
    pub preview_tail_chars: usize,
    /// The longest result where no file can be written.
    pub fallback_max_chars: usize,
    /// How much of its beginning stays then.
    pub fallback_head_chars: usize,
    /// How much of its end stays then.
    pub fallback_tail_chars: usize,
    /// Where the files go, below the thread's outputs.
    pub storage_subdir: String,
    /// Tools whose results stay as they are.
    pub exempt_tools: Vec<String>,
    /// Other values of `externalize_min_chars` for some tools.
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
    /// The longest result of this tool that stays in the conversation; `None` for any length.
    pub fn limit(&self, tool: &str) -> Option<usize> {
        let limit = self
            .tool_overrides
            .get(tool)
            .copied()
            .unwrap_or(self.externalize_min_chars);
        (limit > 0 && !self.is_exempt(tool)).then_some(limit)
    }

    /// Whether the results of this tool stay as they are.
    pub fn is_exempt(&self, tool: &str) -> bool {
        self.exempt_tools.iter().any(|exempt| exempt == tool)
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.not_blank("storage_subdir", &self.storage_subdir);
    }
}
