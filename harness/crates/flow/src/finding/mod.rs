//! Findings about flow documents and their assets, and the result of a validation.

mod code;
mod collector;
mod names;
mod pointer;
mod report;
mod severity;

pub use code::FindingCode;
pub use collector::{Collector, MAX_FINDINGS};
pub(crate) use names::listed;
pub(crate) use pointer::push as push_segment;
pub use report::{Finding, Validation};
pub use severity::Severity;
