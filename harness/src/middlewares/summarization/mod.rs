//! Keeps long conversations within what their model can read.
//!
//! The thread keeps every message. Two channels say what the model gets instead of the oldest ones: the summary, and the message
//! with which the rest begins (`view`). `policy` decides when and where to cut, `write` asks a model for the
//! summary, `ledger` tells beside it which tasks were handed out and which skills were read, `fit` makes a request fit whatever became of that.

mod compact;
mod fit;
mod ledger;
mod middleware;
mod policy;
mod view;
mod write;

pub use compact::{Compaction, Compactor};
pub use middleware::SummarizationMiddleware;
pub use policy::Policy;
pub use view::{SUMMARY_CUT, SUMMARY_TEXT, View};

pub(super) use fit::bounded;
pub(super) use write::transcript;

#[cfg(test)]
mod random_tests;
