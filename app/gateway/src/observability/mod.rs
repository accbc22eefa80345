//! State of the server for its operators: readiness and metrics.

pub mod health;
pub mod metrics;
