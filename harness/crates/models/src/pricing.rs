//! Prices of model calls.

use deerflow_core::config::PricingConfig;
use deerflow_core::messages::UsageMetadata;

const MILLION: f64 = 1_000_000.0;

/// Prices per million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Pricing {
    /// Currency code, such as `USD`.
    pub currency: String,
    /// Price of input tokens.
    pub input: f64,
    /// Price of input tokens that the provider read from its cache.
    pub cached_input: f64,
    /// Price of output tokens.
    pub output: f64,
}

impl From<&PricingConfig> for Pricing {
    fn from(config: &PricingConfig) -> Self {
        let input = config.input_per_million.unwrap_or(0.0);
        Self {
            currency: config.currency.clone(),
            input,
            cached_input: config.input_cache_hit_per_million.unwrap_or(input),
            output: config.output_per_million.unwrap_or(0.0),
        }
    }
}

impl Pricing {
    /// Returns the cost of `usage` in the currency.
    pub fn cost(&self, usage: &UsageMetadata) -> f64 {
        let cached = usage.cache_read().min(usage.input_tokens);
        // Counts stay far below the largest integer that a float represents exactly.
        let tokens = |count: u64| count as f64;
        let fresh = tokens(usage.input_tokens - cached) * self.input;
        (fresh + tokens(cached) * self.cached_input + tokens(usage.output_tokens) * self.output)
            / MILLION
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_input_price_applies_if_set() {
        let usage = UsageMetadata {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            input_token_details: json!({"cache_read": 400_000}).as_object().unwrap().clone(),
            ..UsageMetadata::default()
        };
        let cost = |prices| {
            Pricing::from(&serde_json::from_value::<PricingConfig>(prices).unwrap()).cost(&usage)
        };
        assert_eq!(
            cost(json!({"input_per_million": 2, "output_per_million": 8})),
            6.0
        );
        assert_eq!(
            cost(
                json!({"input_per_million": 2, "output_per_million": 8, "input_cache_hit_per_million": 0.5})
            ),
            5.4
        );
        assert_eq!(cost(json!({})), 0.0);
    }
}
