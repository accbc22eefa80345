//! Backup of a SQLite file while its server is running.

use std::path::Path;

use sea_orm::{ConnectionTrait, Statement};

use super::error::{UpkeepError, at};
use super::partial::PartialBackup;
use super::{check, checksum, copies};
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::files::companions::{folder_of, remove_if_present};
use crate::files::database_files::DATABASE_FILE;
use crate::files::reserve::free_bytes;

/// Bytes of the pages that a copy has: free pages are left out.
const COPIED_BYTES: &str = "SELECT (page_count - freelist_count) * page_size \
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size";

/// A complete backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Database {
    /// Writes all committed data to the new file `target`, which only the owner can read, and its
    /// SHA-256 to `target` with the suffix `.sha256`. The copy is one moment of the database; writes
    /// of a running server continue meanwhile. The copy is checked and is durable before it gets
    /// its name, so a file of that name is always complete and has its checksum. Fails at once if
    /// the file system of `target` has too little space, or if another process writes it.
    pub async fn back_up(config: &DatabaseConfig, target: &Path) -> Result<BackedUp, UpkeepError> {
        let DatabaseConfig::Sqlite(directory) = config else {
            return Err(UpkeepError::NotAFile {
                instead: "back up Postgres with pg_dump --format=custom, and restore it with pg_restore",
            });
        };
        let file = directory.join(DATABASE_FILE);
        if !file.is_file() {
            return Err(UpkeepError::Missing(file));
        }
        refuse_existing(target)?;
        let partial = PartialBackup::acquire(target)
            .map_err(at(target))?
            .ok_or_else(|| UpkeepError::BackupRunning(target.to_owned()))?;
        // Another backup may have ended since the first check.
        refuse_existing(target)?;
        let bytes = write(config, partial.path()).await?;
        publish(&partial, target)?;
        Ok(BackedUp { bytes })
    }
}

fn refuse_existing(target: &Path) -> Result<(), UpkeepError> {
    match target.symlink_metadata() {
        Ok(_) => Err(UpkeepError::Exists(target.to_owned())),
        Err(_) => Ok(()),
    }
}

async fn write(config: &DatabaseConfig, partial: &Path) -> Result<u64, UpkeepError> {
    let source = Database::open_shared(config).await?;
    let connection = source.reads();
    check_space(check::number(connection, COPIED_BYTES).await?, partial)?;
    copies::create_private(partial).map_err(at(partial))?;
    let name = partial.to_string_lossy().into_owned();
    connection
        .execute_raw(Statement::from_sql_and_values(
            connection.get_database_backend(),
            "VACUUM INTO ?",
            [name.into()],
        ))
        .await?;
    let copy = copies::open_copy(partial).await?;
    let integrity = check::sqlite(&copy).await?;
    copy.close().await?;
    match integrity.problems.first() {
        None => Ok(integrity.bytes),
        Some(problem) => Err(UpkeepError::Statement(format!(
            "the copy is damaged, and so is probably the database: {problem}"
        ))),
    }
}

/// Gives a complete backup and its checksum their names. The checksum is first: a checksum without
/// a backup belongs to no file and is replaced by the next backup of that name.
fn publish(partial: &PartialBackup, target: &Path) -> Result<(), UpkeepError> {
    let checksum = checksum::read(partial.path(), |_| Ok(()))?;
    checksum::publish(&checksum, partial.checksum(), target)?;
    let published = refuse_existing(target)
        .and_then(|()| copies::publish(partial.path(), target).map_err(at(target)));
    if published.is_err() && partial.path().exists() {
        let path = checksum::path_of(target);
        remove_if_present(&path).map_err(at(&path))?;
    }
    published
}

/// Fails if the file system of `file` has fewer than `needed` bytes free.
pub(super) fn check_space(needed: u64, file: &Path) -> Result<(), UpkeepError> {
    let folder = folder_of(file);
    let free = free_bytes(folder).map_err(at(folder))?;
    if needed > free {
        return Err(UpkeepError::NoSpace {
            folder: folder.to_owned(),
            needed,
            free,
        });
    }
    Ok(())
}
