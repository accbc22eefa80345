//! Connection of the writer for frequent writes on SQLite: statements are prepared once and run
//! where the caller is, without the query builder and the driver's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deerflow_core::fail_points;
use rusqlite::{Connection, OpenFlags};

use crate::db::write_job::{Batch, Job};

/// Statements that stay prepared.
const CACHED_STATEMENTS: usize = 128;

/// Settings of the connection, equal to those of the other writing connection: see
/// [`crate::db::connect`].
const SETTINGS: &str = "\
    PRAGMA foreign_keys = ON; \
    PRAGMA synchronous = FULL; \
    PRAGMA journal_size_limit = 16777216; \
    PRAGMA wal_autocheckpoint = 4000; \
    PRAGMA temp_store = MEMORY;";

/// A connection for prepared statements, opened at its first use.
pub(crate) struct PreparedWriter {
    file: PathBuf,
    connection: Option<Connection>,
}

impl PreparedWriter {
    /// Creates a writer of this database file.
    pub(crate) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            connection: None,
        }
    }

    /// Closes the connection; the next use opens another.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    /// Runs the prepared jobs of a batch in one transaction. Returns those that are committed, and
    /// the others, which are to run without prepared statements. After an error no job is
    /// committed.
    pub(crate) fn write(&mut self, batch: Batch) -> (Batch, Batch) {
        let (mut prepared, mut others): (Batch, Batch) =
            batch.into_iter().partition(|job| job.is_prepared());
        if prepared.is_empty() {
            return (prepared, others);
        }
        let is_done = self.opened().and_then(|connection| {
            let done = catch_unwind(AssertUnwindSafe(|| commit(connection, &mut prepared)));
            // The panic occurs again without prepared statements, where it is reported.
            done.unwrap_or(Err(rusqlite::Error::UnwindingPanic))
        });
        match is_done {
            Ok(is_done) => {
                let mut is_done = is_done.into_iter();
                let (done, unsuited) = prepared
                    .into_iter()
                    .partition(|_| is_done.next().unwrap_or_default());
                prepared = done;
                others.extend::<Batch>(unsuited);
                (prepared, others)
            }
            Err(error) => {
                tracing::debug!(%error, writes = prepared.len(), "prepared statements failed");
                self.close();
                prepared.append(&mut others);
                (Batch::new(), prepared)
            }
        }
    }

    fn opened(&mut self) -> rusqlite::Result<&Connection> {
        if self.connection.is_none() {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.file, flags)?;
            // Only another program can hold the lock. The other writing connection waits for it.
            connection.busy_timeout(Duration::ZERO)?;
            connection.execute_batch(SETTINGS)?;
            connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
            self.connection = Some(connection);
        }
        self.connection
            .as_ref()
            .ok_or(rusqlite::Error::InvalidQuery)
    }
}

/// Runs jobs in one transaction, and returns for each whether it was done.
fn commit(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> rusqlite::Result<Vec<bool>> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = jobs
        .iter_mut()
        .map(|job| job.run_prepared(connection))
        .collect::<rusqlite::Result<Vec<bool>>>();
    let committed = done.and_then(|done| {
        fail_points::pass("store.written");
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(done)
    });
    match committed {
        Ok(done) => {
            fail_points::pass("store.committed");
            Ok(done)
        }
        Err(error) => {
            // A full disk may have ended the transaction.
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            Err(error)
        }
    }
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
