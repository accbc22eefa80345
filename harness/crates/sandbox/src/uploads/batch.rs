//! Atomic upload of several files: either all become visible or none. All steps that may fail
//! precede the first rename; only a disk error or the end of the process can interrupt the renames.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::error::UploadError;
use super::markdown::{self, MarkdownPlan};
use super::name::{Names, path_of};
use super::view::{Uploaded, UploadedFile};
use crate::documents::DocumentReader;
use crate::sandbox::pending_file::Durability;
use crate::sandbox::{FileError, FileFailure, IncomingFile, ThreadFiles, VirtualPath};
use deerflow_core::config::UploadsConfig;
use deerflow_core::ids::ThreadId;

/// Maximum length of a skipped file name in the response, in characters.
const MAX_NAME_CHARS: usize = 255;

/// Limits of an upload. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadLimits {
    /// Maximum number of files per request.
    pub max_files: u32,
    /// Maximum size of a file.
    pub max_file_size: u64,
    /// Maximum total size of a request.
    pub max_total_size: u64,
}

impl From<&UploadsConfig> for UploadLimits {
    fn from(config: &UploadsConfig) -> Self {
        Self {
            max_files: u32::try_from(config.max_files).unwrap_or(u32::MAX),
            max_file_size: config.max_file_size,
            max_total_size: config.max_total_size,
        }
    }
}

/// Files of one upload before they become visible; deleted on drop.
#[derive(Debug)]
pub struct UploadBatch {
    files: ThreadFiles,
    limits: UploadLimits,
    pending: Vec<PendingUpload>,
    skipped: Vec<String>,
    names: Names,
    count: u32,
    bytes: u64,
}

/// A file of a batch that is being written.
#[derive(Debug)]
pub struct PendingUpload {
    file: IncomingFile,
    original_name: String,
}

impl UploadBatch {
    /// Creates a batch for these files with these limits.
    pub fn new(files: ThreadFiles, limits: UploadLimits) -> Self {
        Self {
            files,
            limits,
            pending: Vec::new(),
            skipped: Vec::new(),
            names: Names::default(),
            count: 0,
            bytes: 0,
        }
    }

    /// Returns the number of bytes received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reports whether no file was ever begun.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Begins a file with the client's name `raw`. Returns `None` if the name is invalid, or if its
    /// path is occupied and must not be replaced; the response lists such names.
    ///
    /// # Errors
    /// [`UploadError::TooMany`], and disk errors.
    pub async fn begin(&mut self, raw: &str) -> Result<Option<PendingUpload>, UploadError> {
        self.count += 1;
        if self.count > self.limits.max_files {
            return Err(UploadError::TooMany(self.limits.max_files));
        }
        let pending = self.try_begin(raw).await?;
        if pending.is_none() {
            self.skipped
                .push(raw.chars().take(MAX_NAME_CHARS).collect());
        }
        Ok(pending)
    }

    async fn try_begin(&mut self, raw: &str) -> Result<Option<PendingUpload>, FileError> {
        let Some(candidate) = path_of(raw) else {
            return Ok(None);
        };
        let original_name = candidate.file_name().to_owned();
        let Some(path) = self.names.claim(candidate) else {
            return Ok(None);
        };
        match self.files.begin_write(&path).await {
            Ok(file) => Ok(Some(PendingUpload {
                file,
                original_name,
            })),
            Err(error) if is_occupied(&error, &path) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends a chunk to a file and returns the file.
    ///
    /// # Errors
    /// [`UploadError::FileTooLarge`], [`UploadError::TooMuch`], and disk errors.
    pub async fn write(
        &mut self,
        pending: PendingUpload,
        piece: Bytes,
    ) -> Result<PendingUpload, UploadError> {
        let PendingUpload {
            file,
            original_name,
        } = pending;
        let length = piece.len() as u64;
        self.bytes += length;
        if file.written() + length > self.limits.max_file_size {
            return Err(UploadError::FileTooLarge(original_name));
        }
        if self.bytes > self.limits.max_total_size {
            return Err(UploadError::TooMuch);
        }
        Ok(PendingUpload {
            file: file.write(piece).await?,
            original_name,
        })
    }

    /// Adds a complete file to the batch.
    pub fn add(&mut self, whole: PendingUpload) {
        self.pending.push(whole);
    }

    /// Makes all files visible, and converts documents to Markdown if `reader` is set.
    ///
    /// # Errors
    /// [`UploadError::Nothing`] if no file was ever begun, and disk errors.
    pub async fn appear(
        mut self,
        user: &str,
        thread: &ThreadId,
        reader: Option<&dyn DocumentReader>,
    ) -> Result<Uploaded, UploadError> {
        if self.is_empty() {
            return Err(UploadError::Nothing);
        }
        let mut staged = Vec::new();
        for PendingUpload {
            file,
            original_name,
        } in self.pending
        {
            staged.push((file.settle().await?, original_name));
        }
        for (incoming, _) in &staged {
            // The Markdown of a replaced document is outdated.
            markdown::remove_markdown_of(&self.files, incoming.path()).await?;
        }
        let (mut files, mut plans) = (Vec::new(), Vec::new());
        for (incoming, original_name) in staged {
            let path = incoming.path().clone();
            plans.push(reader.and_then(|_| MarkdownPlan::of(&path, &mut self.names)));
            let mut file =
                UploadedFile::of(thread, &path, incoming.finish(Durability::Synced).await?);
            file.original_filename =
                Some(original_name).filter(|original_name| path.file_name() != original_name);
            files.push(file);
        }
        if let Some(reader) = reader {
            for (file, markdown) in files
                .iter_mut()
                .zip(markdown::convert(&plans, reader, user, &self.files).await)
            {
                markdown
                    .into_iter()
                    .for_each(|markdown| markdown::set_markdown(file, thread, markdown));
            }
        }
        let message = format!("Successfully uploaded {} file(s)", files.len());
        Ok(Uploaded {
            success: !files.is_empty(),
            message,
            files,
            skipped_files: self.skipped,
        })
    }
}

/// Reports whether an upload must not replace the existing path: a link, a directory, a file with
/// several hard links.
fn is_occupied(error: &FileError, path: &VirtualPath) -> bool {
    let occupied = matches!(
        error.fault(),
        Some(
            FileFailure::Symlink
                | FileFailure::HardLinked
                | FileFailure::IsDirectory
                | FileFailure::NotRegular
                | FileFailure::Permission
        )
    );
    if occupied {
        tracing::warn!(%error, %path, "skipped an upload: its path is occupied");
    }
    occupied
}
