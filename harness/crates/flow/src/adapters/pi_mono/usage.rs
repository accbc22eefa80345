//! Token counts in answers. Pure.

use deerflow_core::messages::UsageMetadata;
use serde_json::Value;

use crate::adapter::Usage;

/// Names of the counts in an answer.
pub(super) struct UsageNames {
    pub(super) input: &'static str,
    pub(super) output: &'static str,
    pub(super) total: &'static str,
}

/// Names in chat completions.
pub(super) const COMPLETION_NAMES: UsageNames = UsageNames {
    input: "prompt_tokens",
    output: "completion_tokens",
    total: "total_tokens",
};

/// Names in answers of the HTTP transport.
pub(super) const TURN_NAMES: UsageNames = UsageNames {
    input: "inputTokens",
    output: "outputTokens",
    total: "totalTokens",
};

/// Reads the counts. A missing sum is computed; a negative or unreadable count is 0.
pub(super) fn read_usage(value: &Value, names: &UsageNames) -> Usage {
    let count = |name: &str| {
        let number = value.get(name).and_then(Value::as_u64);
        number.map(|count| count.min(UsageMetadata::MOST))
    };
    let input_tokens = count(names.input).unwrap_or_default();
    let output_tokens = count(names.output).unwrap_or_default();
    let cost = value.get("costUsd").and_then(Value::as_f64);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: count(names.total).unwrap_or(input_tokens + output_tokens),
        cost_usd: cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
    }
}
