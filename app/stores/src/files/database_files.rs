//! The open files of a SQLite database: a removed or replaced file is detected before any write to
//! it is acknowledged.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use deerflow_domain::readiness::{NotReady, StoredFile};

use crate::files::data_lock::{DataLock, LOCK_FILE};
use crate::files::file_id::FileId;

/// The database file in the data directory.
pub(crate) const DATABASE_FILE: &str = "deerflow.db";

/// Permissions of a new database: it contains conversations and hashes of passwords.
const MODE: u32 = 0o600;

/// Creates an empty database file that only its owner can read, unless the file exists. SQLite
/// gives the files next to it the same permissions.
pub(crate) fn create_private(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(MODE).open(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The files of an open database.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    directory: PathBuf,
    lock: (PathBuf, FileId),
    database: (PathBuf, FileId),
    /// Files that SQLite creates next to the database. They change only while no connection is
    /// open.
    companions: Vec<(StoredFile, PathBuf, FileId)>,
}

impl DatabaseFiles {
    /// Records the files of a connection that has just read the database. Must be called while that
    /// connection is open.
    pub(crate) fn record(directory: &Path, lock: &DataLock) -> io::Result<Self> {
        let database = directory.join(DATABASE_FILE);
        let id = FileId::at(&database)?;
        let mut files = Self {
            directory: directory.to_owned(),
            lock: (directory.join(LOCK_FILE), lock.id()?),
            database: (database, id),
            companions: Vec::new(),
        };
        files.record_companions()?;
        Ok(files)
    }

    /// Records the files that SQLite created next to the database, after the last connection was
    /// closed and another one opened.
    pub(crate) fn record_companions(&mut self) -> io::Result<()> {
        self.companions.clear();
        for (file, suffix) in [
            (StoredFile::DatabaseLog, "-wal"),
            (StoredFile::DatabaseIndex, "-shm"),
        ] {
            let path = self.directory.join(format!("{DATABASE_FILE}{suffix}"));
            match FileId::at(&path) {
                Ok(id) => self.companions.push((file, path, id)),
                // A file system without shared memory has no WAL either.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fails if one of the files is no longer at its path. Takes a few microseconds.
    pub(crate) fn check(&self) -> Result<(), NotReady> {
        self.check_permanent()?;
        self.companions
            .iter()
            .try_for_each(|(file, path, id)| id.check(*file, path))
    }

    /// Checks only the database file and the lock file, which do not change while no connection is
    /// open.
    pub(crate) fn check_permanent(&self) -> Result<(), NotReady> {
        let (path, id) = &self.database;
        id.check(StoredFile::Database, path)?;
        let (path, id) = &self.lock;
        id.check(StoredFile::Lock, path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn removed_or_replaced_file_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DataLock::acquire(directory.path()).unwrap().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [DATABASE_FILE, "deerflow.db-wal", "deerflow.db-shm"] {
            fs::write(at(name), "").unwrap();
        }
        let files = DatabaseFiles::record(directory.path(), &lock).unwrap();
        assert_eq!(files.check(), Ok(()));
        for (name, file) in [
            (DATABASE_FILE, StoredFile::Database),
            ("deerflow.db-wal", StoredFile::DatabaseLog),
            ("deerflow.db-shm", StoredFile::DatabaseIndex),
            (LOCK_FILE, StoredFile::Lock),
        ] {
            fs::rename(at(name), at("elsewhere")).unwrap();
            assert_eq!(files.check(), Err(NotReady::Removed(file)));
            fs::write(at(name), "").unwrap();
            assert_eq!(files.check(), Err(NotReady::Replaced(file)));
            fs::rename(at("elsewhere"), at(name)).unwrap();
            assert_eq!(files.check(), Ok(()));
        }
    }
}
