//! Errors and results of failed calls. Pure.

use super::call::CallFailure;
use crate::adapter::{AgentTurnResult, ConfigFinding, ErrorCategory, FlowError, TurnStatus};
use serde_json::json;

/// Code of failed requests.
pub(super) const REQUEST_FAILED: &str = "PI_MONO_REQUEST_FAILED";
/// Code of answers that are not valid.
pub(super) const BAD_RESPONSE: &str = "PI_MONO_BAD_RESPONSE";
/// Code of DeepSeek requests that the server refused.
pub(super) const DEEPSEEK_REQUEST_FAILED: &str = "PI_MONO_DEEPSEEK_REQUEST_FAILED";
/// Code of empty DeepSeek answers.
pub(super) const DEEPSEEK_EMPTY_RESPONSE: &str = "PI_MONO_DEEPSEEK_EMPTY_RESPONSE";
/// Code of DeepSeek turns without a model.
pub(super) const DEEPSEEK_MODEL_MISSING: &str = "PI_MONO_DEEPSEEK_MODEL_MISSING";
const TIMEOUT: &str = "PI_MONO_TIMEOUT";

/// Canonical name of the kind.
pub(super) const KIND: &str = "pi-mono";

/// Creates an error of this adapter.
pub(super) fn adapter_error(code: &str, message: impl Into<String>) -> FlowError {
    FlowError {
        adapter_kind: Some(KIND.to_owned()),
        ..FlowError::new(code, ErrorCategory::Adapter, message)
    }
}

/// Returns the error of a failed call. `status_code` is the code of refused requests.
pub(super) fn error_of(failure: &CallFailure, status_code: &str) -> FlowError {
    let code = match failure {
        CallFailure::Status { .. } => status_code,
        CallFailure::TimedOut(_) => TIMEOUT,
        CallFailure::TooLarge(_) => BAD_RESPONSE,
        CallFailure::Refused(_) | CallFailure::Network(_) | CallFailure::Cancelled => {
            REQUEST_FAILED
        }
    };
    let error = adapter_error(code, failure.to_string()).retryable(failure.is_retryable());
    match failure {
        CallFailure::Status {
            status,
            retry_after,
            ..
        } => {
            let error = error.with_detail("httpStatus", *status);
            match retry_after {
                Some(wait) => {
                    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    error.with_detail("retryAfterMs", millis)
                }
                None => error,
            }
        }
        _ => error,
    }
}

/// Returns the result of a turn whose call failed.
pub(super) fn result_of(failure: &CallFailure, status_code: &str) -> AgentTurnResult {
    let status = match failure {
        CallFailure::TimedOut(_) => TurnStatus::TimedOut,
        _ => TurnStatus::Failed,
    };
    AgentTurnResult::ended(status, error_of(failure, status_code))
}

/// Returns the error of a configuration with these problems.
pub(super) fn invalid_config(findings: &[ConfigFinding]) -> FlowError {
    let messages: Vec<&str> = findings
        .iter()
        .map(|found| found.message.as_str())
        .collect();
    FlowError {
        category: ErrorCategory::Validation,
        ..adapter_error("adapter_config_invalid", messages.join("; "))
    }
    .with_detail("findings", json!(findings))
}
