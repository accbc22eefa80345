//! `llm_call` and `circuit_breaker`: patience with model providers.

use serde::Deserialize;

use super::check::Checker;

/// Retries and limits of model calls.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LlmCallConfig {
    /// Calls in flight at once to each model whose entry does not say it; 0 means no limit.
    pub max_concurrent_calls: usize,
    /// Most bytes of one answer of each model whose entry does not say it: text, reasoning and arguments of calls together. An answer
    /// that reaches it ends there with the finish reason `length`; 0 means no limit.
    pub max_answer_bytes: usize,
    /// Attempts per call, the first included.
    pub retry_max_attempts: u32,
    /// Milliseconds before the first retry.
    pub retry_base_delay_ms: u64,
    /// Most milliseconds between two attempts.
    pub retry_cap_delay_ms: u64,
    /// Milliseconds before the first retry when the provider says it is busy.
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

/// When a failing provider is left alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CircuitBreakerConfig {
    /// Failures in a row that open the circuit.
    pub failure_threshold: u32,
    /// Seconds until a call is tried again.
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
