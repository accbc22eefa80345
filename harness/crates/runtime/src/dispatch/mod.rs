//! Start of admitted and queued runs: the dispatcher and the tasks of runs.

pub(crate) mod dispatcher;
mod supervisor;

pub use supervisor::RunHandle;
pub(crate) use supervisor::launch;
