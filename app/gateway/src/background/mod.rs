//! Work that no request starts: runs of crons, and removal of expired threads.

mod cron_runs;
mod sweep;

pub use cron_runs::CronRuns;
pub use sweep::{sweep_files, sweep_threads};
