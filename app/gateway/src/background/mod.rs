//! Work that no request starts: runs of crons and of scheduled tasks, and removal of expired
//! threads.

mod cron_runs;
mod sweep;

pub use crate::routes::scheduled_tasks::TaskRuns;
pub use cron_runs::CronRuns;
pub use sweep::{sweep_files, sweep_threads};
