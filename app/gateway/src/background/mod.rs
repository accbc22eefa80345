//! Work that no request starts: runs of crons and of scheduled tasks, and removal of expired
//! threads.

mod cron_runs;
mod sweep;
mod task_runs;

pub use cron_runs::CronRuns;
pub use sweep::{sweep_files, sweep_threads};
pub use task_runs::TaskRuns;
