//! Start of admitted and queued runs: the dispatcher and the tasks of runs.

mod create;
pub(crate) mod dispatcher;
mod supervisor;

pub(crate) use create::create;
pub use supervisor::RunHandle;
