//! Start time of a run, and its strategy on a busy thread.

use std::time::Duration;

use harness::runtime::runs::MultitaskStrategy;
use serde_json::Value;

use super::bodies::{MAX_DELAY, MultitaskName};
use crate::dialect::Dialect;
use crate::extract::Issues;

/// Reads `multitask_strategy`. DeerFlow has no queue, which is checked elsewhere.
pub(super) fn read_multitask(
    value: &Value,
    issues: &mut Issues,
    dialect: Dialect,
) -> MultitaskStrategy {
    if dialect == Dialect::DeerFlow && value == "enqueue" {
        return MultitaskStrategy::Reject;
    }
    let offered = if dialect.is_platform() {
        MultitaskName::WORDS
    } else {
        &MultitaskName::WORDS[..3]
    };
    issues
        .word("multitask_strategy", value, offered)
        .unwrap_or_else(|| dialect.multitask_default())
}

/// Reads `after_seconds`: no delay if it is absent, zero or negative.
pub(super) fn read_delay(value: &Value, issues: &mut Issues) -> Duration {
    if value.is_null() {
        return Duration::ZERO;
    }
    match value.as_f64() {
        Some(seconds) if seconds <= MAX_DELAY => {
            Duration::try_from_secs_f64(seconds).unwrap_or_default()
        }
        Some(_) => issues
            .refuse(
                "less_than_equal",
                "after_seconds",
                "Input should be at most ten years",
                value,
            )
            .unwrap_or_default(),
        None => issues
            .refuse(
                "float_type",
                "after_seconds",
                "Input should be a valid number",
                value,
            )
            .unwrap_or_default(),
    }
}
