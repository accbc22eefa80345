//! The uploads that a thread has.

use std::time::SystemTime;

use super::error::UploadError;
use super::markdown;
use super::shown::{UploadList, UploadRemoved, UploadedFile};
use crate::ids::ThreadId;
use crate::sandbox::safe_fs::NodeKind;
use crate::sandbox::{Fault, FileError, Root, ThreadFiles, VirtualPath};

/// All of them; none where nothing was ever written.
///
/// # Errors
/// When the disk cannot be read.
pub async fn list(files: &ThreadFiles, thread: &ThreadId) -> Result<UploadList, FileError> {
    let items = files.read_dir(&VirtualPath::of_root(Root::Uploads)).await?;
    let regular = items.iter().filter(|item| item.stat.kind == NodeKind::File);
    let files: Vec<UploadedFile> = regular
        .map(|item| UploadedFile {
            extension: Some(extension(item.path.file_name()).to_owned()),
            modified: item.stat.modified.map(seconds),
            ..UploadedFile::of(thread, &item.path, item.stat.bytes)
        })
        .collect();
    Ok(UploadList {
        count: files.len(),
        files,
    })
}

/// Removes one, and the text that was made of it.
///
/// # Errors
/// [`UploadError::NotFound`], [`UploadError::NotAFile`], and what the disk says.
pub async fn remove(
    files: &ThreadFiles,
    place: &VirtualPath,
) -> Result<UploadRemoved, UploadError> {
    let name = place.file_name();
    match files.remove_file(place).await {
        Ok(true) => {
            if let Err(error) = markdown::remove_of(files, place).await {
                tracing::warn!(%error, "the text of a document that is gone cannot be removed");
            }
            Ok(UploadRemoved {
                success: true,
                message: format!("Deleted {name}"),
            })
        }
        Ok(false) => Err(UploadError::NotFound(name.to_owned())),
        Err(error)
            if matches!(
                error.fault(),
                Some(Fault::IsDirectory | Fault::NotRegular | Fault::Symlink)
            ) =>
        {
            Err(UploadError::NotAFile(name.to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The ending with its dot; empty when there is none.
fn extension(name: &str) -> &str {
    name.rfind('.')
        .filter(|at| *at > 0)
        .map_or("", |at| &name[at..])
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .map(|since| since.as_secs_f64())
        .unwrap_or_default()
}
