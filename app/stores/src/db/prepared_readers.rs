//! Connections for frequent reads of single rows on SQLite: statements are prepared once and run in
//! the caller's thread, without the query builder and the driver's threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

/// Statements that stay prepared in each connection.
const CACHED_STATEMENTS: usize = 16;

/// Settings of a connection. A commit of the writer empties its page cache, so a large one has no
/// use.
const SETTINGS: &str = "PRAGMA query_only = ON; PRAGMA cache_size = -256;";

/// Connections to one database file. There are at most as many as threads that read at once.
#[derive(Debug)]
pub(crate) struct PreparedReaders {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl PreparedReaders {
    /// Creates readers of this database file. Connections are opened when they are needed.
    pub(crate) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            idle: Mutex::default(),
        }
    }

    /// Reads a few rows by their keys. The caller's thread waits for it: microseconds if the rows
    /// are in the memory of the operating system, otherwise as long as the disk needs. After an
    /// error the connection is closed; the caller should read through the pool, which classifies
    /// the failure.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let idle = self.idle.lock().pop();
        let connection = idle.map_or_else(|| self.open(), Ok)?;
        let found = read(&connection)?;
        self.idle.lock().push(connection);
        Ok(found)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        // Without write access SQLite could not read a WAL whose index is missing.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.file, flags)?;
        // The pool waits for locks, without the caller's thread.
        connection.busy_timeout(Duration::ZERO)?;
        connection.execute_batch(SETTINGS)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_see_commits_and_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.db");
        let writer = Connection::open(&file).unwrap();
        let sql = "PRAGMA journal_mode = WAL; CREATE TABLE t (n BIGINT PRIMARY KEY)";
        writer.execute_batch(sql).unwrap();
        let readers = PreparedReaders::new(&file);
        let count = |connection: &Connection| {
            let mut statement = connection.prepare_cached("SELECT COUNT(*) FROM t")?;
            statement.query_row([], |row| row.get::<_, i64>(0))
        };
        for expected in 0..3 {
            assert_eq!(readers.read(count).unwrap(), expected);
            let values = format!("INSERT INTO t VALUES ({expected})");
            writer.execute_batch(&values).unwrap();
        }
        assert_eq!(readers.idle.lock().len(), 1);
        let refused = readers.read(|connection| connection.execute_batch("DELETE FROM t"));
        assert!(refused.is_err());
        assert_eq!(readers.idle.lock().len(), 0);
        assert_eq!(readers.read(count).unwrap(), 3);
    }
}
