//! `loop_detection`: when an agent that repeats itself is warned, and when it is stopped.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::Checker;

/// How much repetition is allowed within one run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopDetectionConfig {
    /// Whether anybody looks.
    pub enabled: bool,
    /// The same calls this often: the model is warned.
    pub warn_threshold: usize,
    /// The same calls this often: the run is brought to its end.
    pub hard_limit: usize,
    /// How many answers with calls are compared.
    pub window_size: usize,
    /// Accepted for older configurations; nothing is tracked outside of the conversation.
    pub max_tracked_threads: usize,
    /// One tool this often among the latest calls: the model is warned.
    pub tool_freq_warn: usize,
    /// One tool this often among the latest calls: the run is brought to its end.
    pub tool_freq_hard_limit: usize,
    /// Other frequencies for some tools.
    pub tool_freq_overrides: BTreeMap<String, ToolFrequency>,
}

/// How often one tool may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ToolFrequency {
    /// When the model is warned.
    pub warn: usize,
    /// When the run is brought to its end.
    pub hard_limit: usize,
}

impl Default for LoopDetectionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            warn_threshold: 3,
            hard_limit: 5,
            window_size: 20,
            max_tracked_threads: 100,
            tool_freq_warn: 30,
            tool_freq_hard_limit: 50,
            tool_freq_overrides: BTreeMap::new(),
        }
    }
}

impl LoopDetectionConfig {
    /// How often the tool of this name may be called.
    pub fn frequency(&self, tool: &str) -> ToolFrequency {
        let usual = ToolFrequency {
            warn: self.tool_freq_warn,
            hard_limit: self.tool_freq_hard_limit,
        };
        self.tool_freq_overrides.get(tool).copied().unwrap_or(usual)
    }

    pub(super) fn check(&self, check: &mut Checker) {
        for (key, value) in [
            ("warn_threshold", self.warn_threshold),
            ("hard_limit", self.hard_limit),
            ("window_size", self.window_size),
            ("max_tracked_threads", self.max_tracked_threads),
            ("tool_freq_warn", self.tool_freq_warn),
            ("tool_freq_hard_limit", self.tool_freq_hard_limit),
        ] {
            check.within(key, value, 1..);
        }
        check.under("tool_freq_overrides", |check| {
            for (tool, frequency) in &self.tool_freq_overrides {
                check.under(tool, |check| {
                    check.within("warn", frequency.warn, 1..);
                    check.within("hard_limit", frequency.hard_limit, 1..);
                });
            }
        });
    }
}
