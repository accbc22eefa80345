//! Restore of a SQLite file from a backup.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sea_orm::ConnectionTrait;

use super::backup::check_space;
use super::checksum::{self, Comparison};
use super::error::{UpkeepError, at};
use super::former::move_former;
use super::vacuum::lock;
use super::{check, copies};
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::db::open_writer;
use crate::db::probe::{Schema, schema_of};
use crate::files::companions::{LOG, with_suffix};
use crate::files::database_files::DATABASE_FILE;
use crate::files::file_id::FileId;
use crate::files::interrupted_restore::{RESTORING, repair};

/// Statements that fail if a server could not write to the file.
const TRIAL_WRITE: &str = "PRAGMA journal_mode = WAL; \
    BEGIN IMMEDIATE; CREATE TABLE deerflow_trial_write (a); ROLLBACK";

/// A finished restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The former database, under its new name; `None` if there was none.
    pub former: Option<PathBuf>,
    /// Size of the restored data in bytes.
    pub bytes: u64,
    /// Facts that the operator should know, one sentence each.
    pub warnings: Vec<String>,
}

impl Database {
    /// Replaces the database by `backup`, which is checked first and stays where it is: its SHA-256,
    /// if there is a file with it, its pages, and a write to the copy. The former database gets a
    /// name with the time `now`. No server may be running. A restore that is interrupted at any
    /// point has either database at its place, and the next start or restore removes what it left.
    pub async fn restore(
        config: &DatabaseConfig,
        backup: &Path,
        now: DateTime<Utc>,
    ) -> Result<Restored, UpkeepError> {
        let DatabaseConfig::Sqlite(directory) = config else {
            return Err(UpkeepError::NotAFile {
                instead: "restore Postgres with pg_restore",
            });
        };
        let file = directory.join(DATABASE_FILE);
        check_source(backup, &file)?;
        std::fs::create_dir_all(directory).map_err(at(directory))?;
        let _lock = lock(directory)?;
        let mut warnings = Vec::new();
        for path in repair(directory).map_err(at(directory))? {
            warnings.push(format!(
                "removed {}, which an interrupted restore left",
                path.display()
            ));
        }
        let restored = replace(&file, backup, now, &mut warnings).await;
        if restored.is_err()
            && let Err(error) = repair(directory)
        {
            tracing::warn!(%error, "cannot remove the files of a failed restore");
        }
        let (former, bytes) = restored?;
        Ok(Restored {
            former,
            bytes,
            warnings,
        })
    }
}

/// Refuses files that cannot be a backup, and those that a restore replaces or removes.
fn check_source(backup: &Path, file: &Path) -> Result<(), UpkeepError> {
    let refused = |reason: &str| UpkeepError::NotRestorable {
        file: backup.to_owned(),
        reason: reason.to_owned(),
    };
    let found = backup.metadata().map_err(at(backup))?;
    if !found.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let source = Some(FileId::from(&found));
    if source == FileId::at(file).ok() {
        return Err(refused("it is the database itself"));
    }
    if source == FileId::at(&with_suffix(file, RESTORING)).ok() {
        return Err(refused(
            "an interrupted restore left it, so it may be incomplete; restore the backup itself, or give this file another name first",
        ));
    }
    Ok(())
}

async fn replace(
    file: &Path,
    backup: &Path,
    now: DateTime<Utc>,
    warnings: &mut Vec<String>,
) -> Result<(Option<PathBuf>, u64), UpkeepError> {
    let copy = with_suffix(file, RESTORING);
    check_space(backup.metadata().map_err(at(backup))?.len(), &copy)?;
    let checksum = copy_of(backup, &copy)?;
    compare(&checksum, backup, warnings)?;
    // The copy is checked, not the backup: nothing can change between the check and the use.
    let bytes = verify(&copy, backup).await?;
    // A second name of the database exists from here until the copy replaces it: the copy is
    // durable before, so that this takes a moment only.
    copies::sync(&copy).map_err(at(&copy))?;
    let former = move_former(file, now, warnings).await?;
    copies::publish(&copy, file).map_err(at(file))?;
    check_restored(file).await?;
    Ok((former, bytes))
}

/// Copies a backup, and returns its SHA-256.
fn copy_of(backup: &Path, copy: &Path) -> Result<String, UpkeepError> {
    let mut target = copies::create_private(copy).map_err(at(copy))?;
    checksum::read(backup, |bytes| target.write_all(bytes).map_err(at(copy)))
}

fn compare(checksum: &str, backup: &Path, warnings: &mut Vec<String>) -> Result<(), UpkeepError> {
    match checksum::compare(checksum, backup)? {
        Comparison::Equal => {}
        Comparison::Unknown => warnings.push(format!(
            "there is no {}: damaged bytes within rows cannot be found",
            checksum::path_of(backup).display()
        )),
        Comparison::Different(reason) => {
            return Err(UpkeepError::NotRestorable {
                file: backup.to_owned(),
                reason,
            });
        }
    }
    let log = with_suffix(backup, LOG);
    if log.metadata().is_ok_and(|found| found.len() > 0) {
        warnings.push(format!(
            "{} is not restored: a backup has no log, so this file may be a database that was copied while it was in use",
            log.display()
        ));
    }
    Ok(())
}

async fn verify(copy: &Path, backup: &Path) -> Result<u64, UpkeepError> {
    let refused = |reason: String| UpkeepError::NotRestorable {
        file: backup.to_owned(),
        reason,
    };
    let unreadable = |error: &dyn std::fmt::Display| refused(format!("it is damaged: {error}"));
    let connection = copies::open_copy(copy)
        .await
        .map_err(|error| unreadable(&error))?;
    let checked = check::sqlite(&connection).await;
    let schema = schema_of(&connection).await;
    connection.close().await?;
    let integrity = checked.map_err(|error| unreadable(&error))?;
    if let Some(problem) = integrity.problems.first() {
        return Err(unreadable(problem));
    }
    match schema.map_err(|error| unreadable(&error))? {
        Schema::Current | Schema::Older { .. } => {}
        Schema::Missing => return Err(refused("it is not a database of deerflow".to_owned())),
        Schema::Newer { version } => {
            return Err(refused(format!(
                "a newer version of deerflow wrote it ({version})"
            )));
        }
    }
    try_write(copy)
        .await
        .map_err(|error| refused(format!("it cannot be written: {error}")))?;
    Ok(integrity.bytes)
}

/// Opens a copy as a server does, and begins to write. The rows stay as they are.
async fn try_write(copy: &Path) -> Result<(), UpkeepError> {
    let connection = copies::open(copy).await?;
    let written = connection.execute_unprepared(TRIAL_WRITE).await;
    connection.close().await?;
    written?;
    // The last connection has written its log back and removed it.
    match with_suffix(copy, LOG).metadata() {
        Ok(log) if log.len() > 0 => Err(UpkeepError::Statement(
            "its log cannot be written back".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Checks the database under its final name, with the files next to it.
async fn check_restored(file: &Path) -> Result<(), UpkeepError> {
    let failed = |reason: String| UpkeepError::RestoredDamaged {
        file: file.to_owned(),
        reason,
    };
    let connection = copies::open(file)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let checked = open_writer::check(&connection).await;
    connection.close().await?;
    checked.map_err(|failure| failed(UpkeepError::from(failure).to_string()))
}
