//! Files of databases that no server uses: opening, creation, and durable names.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sea_orm::{DatabaseConnection, SqlxSqliteConnector};
use sqlx::sqlite::SqliteConnectOptions;

use super::error::UpkeepError;
use crate::db::connect::connection_failed;
use crate::db::pool::{sqlite_options, sqlite_pool};
use crate::files::companions::{remove_if_present, sync_folder};

/// Only the owner reads and writes a copy: it holds all data of all users.
pub(super) const MODE: u32 = 0o600;

/// Opens an existing SQLite file with one connection.
pub(super) async fn open(file: &Path) -> Result<DatabaseConnection, UpkeepError> {
    connect(sqlite_options().filename(file).create_if_missing(false)).await
}

/// Opens a complete copy, which no other program writes, to read it. Creates no file next to it.
pub(super) async fn open_copy(file: &Path) -> Result<DatabaseConnection, UpkeepError> {
    connect(
        sqlite_options()
            .filename(file)
            .create_if_missing(false)
            .read_only(true)
            .immutable(true),
    )
    .await
}

async fn connect(options: SqliteConnectOptions) -> Result<DatabaseConnection, UpkeepError> {
    let pool = sqlite_pool(1)
        .connect_with(options)
        .await
        .map_err(connection_failed)?;
    Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool))
}

/// Creates an empty file that only the owner can read. A file of an interrupted attempt is replaced.
pub(super) fn create_private(file: &Path) -> io::Result<File> {
    remove_if_present(file)?;
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(MODE)
        .open(file)
}

/// Renames a complete file so that its content and its name survive a power failure. A rename on
/// one file system is atomic.
pub(super) fn publish(from: &Path, to: &Path) -> io::Result<()> {
    sync(from)?;
    std::fs::rename(from, to)?;
    sync_folder(to)
}

/// Makes the content of a file durable.
pub(super) fn sync(file: &Path) -> io::Result<()> {
    File::open(file)?.sync_all()
}
