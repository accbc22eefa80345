//! Keeps long conversations within their model's window.
//!
//! The thread retains every message. Two channels define what replaces the oldest ones for the
//! model: the summary, and the id of the first message after it (`view`). `policy` decides when and
//! where to cut, `write` requests the summary from a model, `digest` lists delegated tasks and
//! skills next to it, and `fit` makes a request fit in any case.

mod bounded_text;
mod compact;
mod digest;
mod fit;
mod middleware;
mod policy;
mod view;
mod write;

pub use compact::{Compaction, Compactor};
pub use middleware::SummarizationMiddleware;
pub use policy::Policy;
pub use view::{SUMMARY_CUT, SUMMARY_TEXT, View};

pub(super) use bounded_text::bounded;
pub(super) use write::transcript;

#[cfg(test)]
mod random_tests;
