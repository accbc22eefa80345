//! Progress of the migration of an existing database: a bar on a terminal, otherwise log lines.

use std::io::{IsTerminal, stderr};

use deerflow_stores::MigrationProgress;

/// Number of characters of a complete bar.
const WIDTH: usize = 30;

/// Reports a step before it runs.
pub(super) fn report_migration(progress: &MigrationProgress) {
    let MigrationProgress { done, total, step } = progress;
    if stderr().is_terminal() {
        let end = if done + 1 == *total { "\n" } else { "" };
        eprint!("\r\x1b[K{}{end}", bar(progress));
    } else {
        tracing::info!(step, done, total, "migrating the database");
    }
}

/// Returns the line with the bar.
fn bar(progress: &MigrationProgress) -> String {
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
            bar(&MigrationProgress {
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
