//! Identity of the open files of a SQLite database: a removed or replaced file is noticed before anything written to it is acknowledged.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use deerflow_domain::readiness::{NotReady, StoredFile};

use crate::connect::FILE;
use crate::lock::{DataLock, LOCK_FILE};

/// Device and inode of a file: two paths with the same id lead to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The id of the file at `path`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    /// The id of an open file, wherever it is by now.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Compares with the file at `path`.
    pub(crate) fn check(self, file: StoredFile, path: &Path) -> Result<(), NotReady> {
        match Self::at(path) {
            Ok(found) if found == self => Ok(()),
            Ok(_) => Err(NotReady::Replaced(file)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Err(NotReady::Removed(file))
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a file that is in use cannot be looked at");
                Err(NotReady::WriteFailed)
            }
        }
    }
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// The files that an open database consists of.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    directory: PathBuf,
    lock: FileId,
    database: FileId,
    /// Those that SQLite makes beside the database. They change only while no connection is open.
    beside: Vec<(StoredFile, PathBuf, FileId)>,
}

impl DatabaseFiles {
    /// Records what a connection that has just read the database uses. Call it while that connection is open.
    pub(crate) fn record(directory: &Path, lock: &DataLock) -> io::Result<Self> {
        let database = FileId::at(&directory.join(FILE))?;
        let mut files = Self {
            directory: directory.to_owned(),
            lock: lock.id()?,
            database,
            beside: Vec::new(),
        };
        files.record_beside()?;
        Ok(files)
    }

    /// Records anew what SQLite made beside the database, after the last connection was closed and another one opened.
    pub(crate) fn record_beside(&mut self) -> io::Result<()> {
        self.beside.clear();
        for (file, suffix) in [
            (StoredFile::DatabaseLog, "-wal"),
            (StoredFile::DatabaseIndex, "-shm"),
        ] {
            let path = self.directory.join(format!("{FILE}{suffix}"));
            match FileId::at(&path) {
                Ok(id) => self.beside.push((file, path, id)),
                // A file system without shared memory has no log either.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fails when one of the files is not at its path any more. A few microseconds.
    pub(crate) fn check(&self) -> Result<(), NotReady> {
        self.check_lasting()?;
        self.beside
            .iter()
            .try_for_each(|(file, path, id)| id.check(*file, path))
    }

    /// Checks only the files that stay the same while no connection is open.
    pub(crate) fn check_lasting(&self) -> Result<(), NotReady> {
        self.database
            .check(StoredFile::Database, &self.directory.join(FILE))?;
        self.lock
            .check(StoredFile::Lock, &self.directory.join(LOCK_FILE))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_removed_or_replaced_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DataLock::take(directory.path()).unwrap().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [FILE, "deerflow.db-wal", "deerflow.db-shm"] {
            fs::write(at(name), "").unwrap();
        }
        let files = DatabaseFiles::record(directory.path(), &lock).unwrap();
        assert_eq!(files.check(), Ok(()));
        for (name, file) in [
            (FILE, StoredFile::Database),
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
