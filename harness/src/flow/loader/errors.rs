//! Errors of loaders.

use crate::flow::adapter::{ErrorCategory, FlowError};

pub(super) fn no_hosts() -> FlowError {
    let message = "HTTP loaders are not enabled; list their hosts in flows.loader_hosts";
    not_allowed(message)
}

pub(super) fn not_allowed(message: impl Into<String>) -> FlowError {
    FlowError::new("loader_not_allowed", ErrorCategory::Validation, message)
}

pub(super) fn failed(message: impl Into<String>) -> FlowError {
    FlowError::new("loader_failed", ErrorCategory::Adapter, message)
}

pub(super) fn invalid(message: impl Into<String>) -> FlowError {
    FlowError::new("invalid_config", ErrorCategory::Validation, message)
}
