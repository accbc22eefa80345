//! Delegation of tasks to subagents: the name of the tool and the limits of an agent.

use serde_json::{Map, Value};

/// Name of the tool that starts a subagent.
pub const TASK: &str = "task";
/// Maximum configurable number of concurrent tasks.
const MAX_AT_ONCE: u64 = 4;
/// Maximum configurable number of tasks per run.
const MAX_PER_RUN: u64 = 50;
/// Default number of concurrent tasks.
const DEFAULT_AT_ONCE: u64 = 3;

/// Number of tasks that an agent may delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskLimits {
    /// Maximum number in one answer.
    pub at_once: usize,
    /// Maximum number in one run; `None` for the configured number.
    pub in_a_run: Option<usize>,
}

impl TaskLimits {
    /// Reads the limits from the options of a run.
    pub fn read(options: &Map<String, Value>) -> Self {
        let option = |key: &str| options.get(key).and_then(Value::as_u64);
        Self {
            at_once: option("max_concurrent_subagents")
                .unwrap_or(DEFAULT_AT_ONCE)
                .clamp(1, MAX_AT_ONCE) as usize,
            in_a_run: option("max_total_subagents")
                .map(|total| total.clamp(1, MAX_PER_RUN) as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_clamped() {
        let read = |options: Value| TaskLimits::read(options.as_object().unwrap());
        assert_eq!(
            read(json!({})),
            TaskLimits {
                at_once: 3,
                in_a_run: None
            }
        );
        let far = read(json!({"max_concurrent_subagents": 99, "max_total_subagents": 0}));
        assert_eq!(
            far,
            TaskLimits {
                at_once: 4,
                in_a_run: Some(1)
            }
        );
        assert_eq!(
            read(json!({"max_concurrent_subagents": "2", "max_total_subagents": -1})),
            read(json!({}))
        );
    }
}
