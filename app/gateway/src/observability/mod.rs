//! State of the server for its operators: readiness and metrics.

pub mod health;
pub mod metrics;
pub(crate) mod request_counts;
