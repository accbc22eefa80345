//! Start time of a run, and its strategy on a busy thread.

use std::time::Duration;

use harness::runtime::runs::MultitaskStrategy;

use crate::dialect::Dialect;
use crate::extract::Fields;

/// Maximum delay of a run, in seconds: somewhat more than ten years.
const MAX_DELAY: f64 = 10.0 * 366.0 * 24.0 * 60.0 * 60.0;

const STRATEGIES: &[(&str, MultitaskStrategy)] = &[
    ("reject", MultitaskStrategy::Reject),
    ("rollback", MultitaskStrategy::Rollback),
    ("interrupt", MultitaskStrategy::Interrupt),
    ("enqueue", MultitaskStrategy::Enqueue),
];

/// Reads `multitask_strategy`. DeerFlow has no queue, which is checked elsewhere.
pub(super) fn read_multitask(fields: &mut Fields, dialect: Dialect) -> MultitaskStrategy {
    if dialect == Dialect::DeerFlow
        && fields
            .value("multitask_strategy")
            .is_some_and(|word| word == "enqueue")
    {
        return MultitaskStrategy::Reject;
    }
    let offered = if dialect.is_platform() {
        STRATEGIES
    } else {
        &STRATEGIES[..3]
    };
    fields
        .word("multitask_strategy", offered)
        .unwrap_or_else(|| dialect.multitask_default())
}

/// Reads `after_seconds`: no delay if it is absent, zero or negative.
pub(super) fn read_delay(fields: &mut Fields, dialect: Dialect) -> Duration {
    let Some(value) = fields
        .value("after_seconds")
        .filter(|_| dialect.is_platform())
        .cloned()
    else {
        return Duration::ZERO;
    };
    match value.as_f64() {
        Some(seconds) if seconds <= MAX_DELAY => {
            Duration::try_from_secs_f64(seconds).unwrap_or_default()
        }
        Some(_) => fields
            .refuse(
                "less_than_equal",
                "after_seconds",
                "Input should be at most ten years",
                &value,
            )
            .unwrap_or_default(),
        None => fields
            .refuse(
                "float_type",
                "after_seconds",
                "Input should be a valid number",
                &value,
            )
            .unwrap_or_default(),
    }
}
