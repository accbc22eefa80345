//! Listing and removal of a thread's uploads.

use std::time::SystemTime;

use super::error::UploadError;
use super::markdown;
use super::view::{UploadList, UploadRemoved, UploadedFile};
use crate::sandbox::safe_fs::NodeKind;
use crate::sandbox::{FileError, FileFailure, Root, ThreadFiles, VirtualPath};
use deerflow_core::ids::ThreadId;

/// Lists all uploads; empty if the thread has none.
///
/// # Errors
/// If the disk cannot be read.
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

/// Removes an upload and the Markdown converted from it.
///
/// # Errors
/// [`UploadError::NotFound`], [`UploadError::NotAFile`], and disk errors.
pub async fn remove(files: &ThreadFiles, path: &VirtualPath) -> Result<UploadRemoved, UploadError> {
    let name = path.file_name();
    match files.remove_file(path).await {
        Ok(true) => {
            if let Err(error) = markdown::remove_markdown_of(files, path).await {
                tracing::warn!(%error, "cannot remove the Markdown of a removed document");
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
                Some(FileFailure::IsDirectory | FileFailure::NotRegular | FileFailure::Symlink)
            ) =>
        {
            Err(UploadError::NotAFile(name.to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// File extension with its dot; empty if there is none.
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
