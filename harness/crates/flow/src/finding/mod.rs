//! Findings about flow documents and their assets, and the result of a validation.

mod code;
mod collector;
mod report;
mod severity;

pub use code::FindingCode;
pub use collector::{Collector, MAX_FINDINGS};
pub use report::{Finding, Validation};
pub use severity::Severity;
