//! The former database of a restore: it gets another name, and no file next to it stays.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sea_orm::ConnectionTrait;

use super::copies;
use super::error::{UpkeepError, at};
use super::vacuum::WRITE_LOG_BACK;
use crate::files::companions::{INDEX, JOURNAL, LOG, remove_if_present, sync_folder, with_suffix};
use crate::files::interrupted_restore::FORMER;

/// Gives the database, if there is one, a second name, and renames or removes the files next to it,
/// which SQLite would apply to the restored file. Durable when this returns. The log is written back
/// before; a log that cannot be written back, or has no database, is stored under the new name.
pub(super) async fn move_former(
    file: &Path,
    now: DateTime<Utc>,
    warnings: &mut Vec<String>,
) -> Result<Option<PathBuf>, UpkeepError> {
    let former = unused_name(file, now)?;
    let exists = file.symlink_metadata().is_ok();
    if exists {
        if let Err(error) = write_log_back(file).await {
            warnings.push(format!(
                "the former database is damaged, its log is stored next to it: {error}"
            ));
        }
        std::fs::hard_link(file, &former).map_err(at(&former))?;
        // After an interruption the second name leads to the log.
        sync_folder(file).map_err(at(file))?;
    }
    for suffix in [LOG, JOURNAL] {
        let (from, to) = (with_suffix(file, suffix), with_suffix(&former, suffix));
        if move_companion(&from, &to).map_err(at(&from))? && !exists {
            warnings.push(format!(
                "{} had no database and is now {}",
                from.display(),
                to.display()
            ));
        }
    }
    let index = with_suffix(file, INDEX);
    remove_if_present(&index).map_err(at(&index))?;
    sync_folder(file).map_err(at(file))?;
    Ok(exists.then_some(former))
}

/// Returns the new name of the former database. No file has it, with any suffix.
fn unused_name(file: &Path, now: DateTime<Utc>) -> Result<PathBuf, UpkeepError> {
    let time = now.format("%Y%m%dT%H%M%SZ");
    let former = with_suffix(file, &format!("{FORMER}{time}"));
    for suffix in ["", LOG, JOURNAL] {
        let path = with_suffix(&former, suffix);
        if path.symlink_metadata().is_ok() {
            return Err(UpkeepError::FormerExists(path));
        }
    }
    Ok(former)
}

/// Renames a file that may not exist, or removes it if it is empty. Returns `true` if it has the
/// new name.
fn move_companion(from: &Path, to: &Path) -> io::Result<bool> {
    match from.symlink_metadata() {
        Ok(found) if found.len() == 0 => remove_if_present(from).map(|_| false),
        Ok(_) => std::fs::rename(from, to).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes the log into the database and removes it, which the last connection does when it closes.
async fn write_log_back(file: &Path) -> Result<(), UpkeepError> {
    let connection = copies::open(file).await?;
    let written = connection.execute_unprepared(WRITE_LOG_BACK).await;
    connection.close().await?;
    written?;
    Ok(())
}
