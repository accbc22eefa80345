//! Port of the metrics of this process.

use std::fmt;

/// Metrics of this process.
pub trait MetricsView: Send + Sync + fmt::Debug {
    /// Returns all metrics in Prometheus' text format.
    fn render(&self) -> String;
}
