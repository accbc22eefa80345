//! Restore of a SQLite file from a backup.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sea_orm::ConnectionTrait;

use super::error::{UpkeepError, at};
use super::vacuum::{WRITE_LOG_BACK, lock};
use super::{check, copies};
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::db::probe::{Schema, schema_of};
use crate::files::database_files::DATABASE_FILE;

/// Suffix of the copy until it replaces the database.
const PARTIAL: &str = ".restoring";

/// A finished restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The former database, under its new name; `None` if there was none.
    pub former: Option<PathBuf>,
    /// Size of the restored data in bytes.
    pub bytes: u64,
}

impl Database {
    /// Replaces the database by `backup`, which is checked first and stays where it is. The former
    /// database gets a name with the time `now`. No server may be running. A restore that is
    /// interrupted at any point has either database at its place.
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
        std::fs::create_dir_all(directory).map_err(at(directory))?;
        let _lock = lock(directory)?;
        let file = directory.join(DATABASE_FILE);
        let copy = copies::with_suffix(&file, PARTIAL);
        let restored = replace(&file, &copy, backup, now).await;
        if restored.is_err() {
            copies::remove_if_present(&copy).map_err(at(&copy))?;
        }
        restored
    }
}

async fn replace(
    file: &Path,
    copy: &Path,
    backup: &Path,
    now: DateTime<Utc>,
) -> Result<Restored, UpkeepError> {
    let mut source = std::fs::File::open(backup).map_err(at(backup))?;
    let mut target = copies::create_private(copy).map_err(at(copy))?;
    std::io::copy(&mut source, &mut target).map_err(at(copy))?;
    // The copy is checked, not the backup: nothing can change between the check and the use.
    let bytes = verify(copy, backup).await?;
    let former = if file.is_file() {
        Some(rename_former(file, now).await?)
    } else {
        None
    };
    copies::publish(copy, file).map_err(at(file))?;
    Ok(Restored { former, bytes })
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
        Schema::Current | Schema::Older { .. } => Ok(integrity.bytes),
        Schema::Missing => Err(refused("it is not a database of deerflow".to_owned())),
        Schema::Newer { version } => Err(refused(format!(
            "a newer version of deerflow wrote it ({version})"
        ))),
    }
}

/// Gives the database a second name. Its log is written back before, or gets a name next to it if
/// the database is damaged.
async fn rename_former(file: &Path, now: DateTime<Utc>) -> Result<PathBuf, UpkeepError> {
    let suffix = now.format(".before-restore-%Y%m%dT%H%M%SZ").to_string();
    let former = copies::with_suffix(file, &suffix);
    if former.symlink_metadata().is_ok() {
        return Err(UpkeepError::Exists(former));
    }
    if let Err(error) = write_log_back(file).await {
        tracing::warn!(%error, "the former database is damaged, its log is stored next to it");
    }
    std::fs::hard_link(file, &former).map_err(at(&former))?;
    for companion in ["-wal", "-shm"] {
        let (from, to) = (
            copies::with_suffix(file, companion),
            copies::with_suffix(&former, companion),
        );
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at(&from)(error));
            }
            _ => {}
        }
    }
    copies::sync_folder(file).map_err(at(file))?;
    Ok(former)
}

/// Writes the log into the database and removes it, which the last connection does when it closes.
async fn write_log_back(file: &Path) -> Result<(), UpkeepError> {
    let connection = copies::open(file).await?;
    let written = connection.execute_unprepared(WRITE_LOG_BACK).await;
    connection.close().await?;
    written?;
    Ok(())
}
