//! Progress of the migration of an existing database: a bar on a terminal, otherwise log lines.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use deerflow_stores::{Database, DatabaseConfig, MigrationProgress, OpenError};
use harness::runtime::tasks::Tasks;

/// Number of characters of a complete bar.
const WIDTH: usize = 30;

/// Opens the database like [`Database::open_with_reserve`], and reports its migration.
pub(crate) async fn open_database(
    config: &DatabaseConfig,
    reserve: u64,
    tasks: &Tasks,
) -> Result<Database, OpenError> {
    let bar = MigrationBar::default();
    let report = |progress: &_| bar.report(progress);
    Database::open_with_reserve(config, reserve, tasks, &report).await
}

/// Bar of a migration. Its line ends when it is dropped.
#[derive(Debug, Default)]
struct MigrationBar {
    is_shown: AtomicBool,
}

impl MigrationBar {
    /// Reports a step before it runs.
    fn report(&self, progress: &MigrationProgress) {
        let MigrationProgress { done, total, step } = progress;
        if stderr().is_terminal() {
            self.is_shown.store(true, Ordering::Relaxed);
            eprint!("\r\x1b[K{}", line(progress));
        } else {
            tracing::info!(step, done, total, "migrating the database");
        }
    }
}

impl Drop for MigrationBar {
    fn drop(&mut self) {
        if *self.is_shown.get_mut() {
            eprintln!();
        }
    }
}

/// Returns the line with the bar.
fn line(progress: &MigrationProgress) -> String {
    let filled = progress.done * WIDTH / progress.total.max(1);
    let (full, empty) = ("#".repeat(filled), "-".repeat(WIDTH - filled));
    format!("migrating the database [{full}{empty}] {progress}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_grows_with_the_steps() {
        let line = |done| {
            line(&MigrationProgress {
                done,
                total: 3,
                step: "m0040_run_texts".to_owned(),
            })
        };
        assert_eq!(
            line(1),
            "migrating the database [##########--------------------] 1 of 3 steps, next m0040_run_texts"
        );
        assert!(line(0).contains("[------------------------------]"));
    }
}
