//! Backup of a SQLite file while its server is running.

use std::path::Path;

use sea_orm::{ConnectionTrait, Statement};

use super::error::{UpkeepError, at};
use super::{check, copies};
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::files::database_files::DATABASE_FILE;

/// Suffix of a backup that is being written.
const PARTIAL: &str = ".partial";

/// A complete backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Database {
    /// Writes all committed data to the new file `target`, which only the owner can read. The copy
    /// is one moment of the database; writes of a running server continue meanwhile. The copy is
    /// checked and is durable before it gets its name, so a file of that name is always complete.
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
        if target.symlink_metadata().is_ok() {
            return Err(UpkeepError::Exists(target.to_owned()));
        }
        let partial = copies::with_suffix(target, PARTIAL);
        let written = write(config, &partial).await;
        let published = written.and_then(|bytes| {
            copies::publish(&partial, target).map_err(at(target))?;
            Ok(BackedUp { bytes })
        });
        if published.is_err() {
            copies::remove_if_present(&partial).map_err(at(&partial))?;
        }
        published
    }
}

async fn write(config: &DatabaseConfig, partial: &Path) -> Result<u64, UpkeepError> {
    copies::create_private(partial).map_err(at(partial))?;
    let source = Database::open_shared(config).await?;
    let name = partial.to_string_lossy().into_owned();
    let connection = source.reads();
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
