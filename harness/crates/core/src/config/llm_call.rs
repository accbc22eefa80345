//! `llm_call` and `circuit_breaker`: retries and limits of calls to model providers.

use serde::Deserialize;

use super::check::Checker;

/// Retries and limits of model calls.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LlmCallConfig {
    /// Maximum concurrent calls to each model whose entry does not set it; 0 for no limit.
    pub max_concurrent_calls: usize,
    /// Maximum size of one answer in bytes, for each model whose entry does not set it. It counts
    /// text, reasoning and call arguments together. An answer that reaches it is cut off with the
    /// finish reason `length`; 0 for no limit.
    pub max_answer_bytes: usize,
    /// Maximum attempts per call, the first included.
    pub retry_max_attempts: u32,
    /// Delay before the first retry, in milliseconds.
    pub retry_base_delay_ms: u64,
    /// Maximum delay between two attempts, in milliseconds.
    pub retry_cap_delay_ms: u64,
    /// Delay before the first retry if the provider reports overload, in milliseconds.
    pub burst_retry_base_delay_ms: u64,
}

impl Default for LlmCallConfig {
    fn default() -> Self {
        Self {
            max_concurrent_calls: 0,
            max_answer_bytes: 2 << 20,
            retry_max_attempts: 3,
            retry_base_delay_ms: 1000,
            retry_cap_delay_ms: 8000,
            burst_retry_base_delay_ms: 5000,
        }
    }
}

impl LlmCallConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("retry_max_attempts", self.retry_max_attempts, 1..);
    }
}

/// Circuit breaker for failing providers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CircuitBreakerConfig {
    /// Number of consecutive failures that open the circuit.
    pub failure_threshold: u32,
    /// Time until a call is attempted again, in seconds.
    pub recovery_timeout_sec: u64,
}

impl Default for CircuitBreakerConfig {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            recovery_timeout_sec: 60,
        }
    }
}

impl CircuitBreakerConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("failure_threshold", self.failure_threshold, 1..);
    }
}
