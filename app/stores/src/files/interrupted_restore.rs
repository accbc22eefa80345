//! Repair after a restore that was interrupted: the database has one name again, and its log.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files::companions::{
    JOURNAL, LOG, remove_if_present, remove_with_companions, sync_folder, with_suffix,
};
use crate::files::database_files::DATABASE_FILE;
use crate::files::file_id::FileId;

/// Suffix of the copy of a backup until it replaces the database.
pub(crate) const RESTORING: &str = ".restoring";
/// Suffix of the former database, before the time of the restore.
pub(crate) const FORMER: &str = ".before-restore-";

/// Removes what an interrupted restore left in a data directory, whose lock the caller holds: the
/// incomplete copy, and second names of the database. A log that was renamed before the database
/// was replaced gets its name back. Returns the removed files.
pub(crate) fn repair(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let file = directory.join(DATABASE_FILE);
    let mut removed = second_names(directory, &file)?;
    for former in &removed {
        for suffix in [LOG, JOURNAL] {
            rename_back(
                &file,
                &with_suffix(former, suffix),
                &with_suffix(&file, suffix),
            )?;
        }
    }
    if !removed.is_empty() {
        // The log must be found by its name before the second name, which leads to it, is gone.
        sync_folder(&file)?;
    }
    for former in &removed {
        remove_if_present(former)?;
    }
    let copy = with_suffix(&file, RESTORING);
    if remove_with_companions(&copy)? {
        removed.push(copy);
    }
    for path in &removed {
        tracing::warn!(file = %path.display(), "removed a file that an interrupted restore left");
    }
    if !removed.is_empty() {
        sync_folder(&file)?;
    }
    Ok(removed)
}

/// Returns the names of former databases that are the database itself.
fn second_names(directory: &Path, file: &Path) -> io::Result<Vec<PathBuf>> {
    let database = match file.symlink_metadata() {
        Ok(found) => FileId::from(&found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let prefix = format!("{DATABASE_FILE}{FORMER}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix)
            && entry
                .metadata()
                .is_ok_and(|metadata| FileId::from(&metadata) == database)
        {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Renames a log back to the name `to`. A log that does not exist, or is outdated because the
/// database was written after the log was renamed, stays as it is: SQLite would apply old pages.
fn rename_back(database: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let log = match from.symlink_metadata() {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let written = database.metadata()?;
    let is_outdated = (written.mtime(), written.mtime_nsec()) > (log.ctime(), log.ctime_nsec());
    if is_outdated || to.metadata().is_ok_and(|newer| newer.len() > 0) {
        tracing::warn!(file = %from.display(), "the log of an interrupted restore is outdated, it is not applied");
        return Ok(());
    }
    std::fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn log_is_not_applied_to_a_database_that_was_written_later() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at(DATABASE_FILE), "data").unwrap();
        fs::hard_link(at(DATABASE_FILE), at("deerflow.db.before-restore-1")).unwrap();
        fs::write(at("deerflow.db.before-restore-1-wal"), "log").unwrap();
        let database = fs::File::options().append(true).open(at(DATABASE_FILE));
        let database = database.unwrap();
        let created = database.metadata().unwrap().modified().unwrap();
        let later = created + std::time::Duration::from_secs(60);
        database.set_modified(later).unwrap();
        repair(directory.path()).unwrap();
        assert!(!at("deerflow.db-wal").exists());
        assert!(at("deerflow.db.before-restore-1-wal").exists());
    }

    #[test]
    fn interrupted_restore_is_undone_and_its_log_returns() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at(DATABASE_FILE), "data").unwrap();
        fs::hard_link(at(DATABASE_FILE), at("deerflow.db.before-restore-2")).unwrap();
        fs::write(at("deerflow.db.before-restore-2-wal"), "log").unwrap();
        fs::write(at("deerflow.db.before-restore-1"), "data").unwrap();
        for name in ["deerflow.db.restoring", "deerflow.db.restoring-wal"] {
            fs::write(at(name), "half").unwrap();
        }
        let removed = repair(directory.path()).unwrap();
        assert_eq!(
            removed,
            [
                at("deerflow.db.before-restore-2"),
                at("deerflow.db.restoring")
            ]
        );
        let mut names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        // A former database of a complete restore is a file of its own, and stays.
        assert_eq!(
            names,
            [
                "deerflow.db",
                "deerflow.db-wal",
                "deerflow.db.before-restore-1"
            ]
        );
        assert_eq!(fs::read(at("deerflow.db-wal")).unwrap(), b"log");
        assert_eq!(repair(directory.path()).unwrap(), Vec::<PathBuf>::new());
    }
}
