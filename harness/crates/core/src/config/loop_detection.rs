//! `loop_detection`: thresholds for warning and stopping an agent that repeats itself.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::Checker;

/// Allowed repetition within one run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopDetectionConfig {
    /// Enables the detection.
    pub enabled: bool,
    /// Number of identical calls after which the model is warned.
    pub warn_threshold: usize,
    /// Number of identical calls after which the run is ended.
    pub hard_limit: usize,
    /// Number of recent answers with calls that are compared.
    pub window_size: usize,
    /// Accepted for compatibility with older configurations; has no effect, since only the
    /// conversation is tracked.
    pub max_tracked_threads: usize,
    /// Number of recent calls of one tool after which the model is warned.
    pub tool_freq_warn: usize,
    /// Number of recent calls of one tool after which the run is ended.
    pub tool_freq_hard_limit: usize,
    /// Thresholds of single tools.
    pub tool_freq_overrides: BTreeMap<String, ToolFrequency>,
}

/// Call frequency thresholds of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ToolFrequency {
    /// Number of calls after which the model is warned.
    pub warn: usize,
    /// Number of calls after which the run is ended.
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
    /// Returns the thresholds of this tool: its own, or the general ones.
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
