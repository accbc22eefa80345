//! Files that come together. Either all of them appear or none: whatever may fail is done before the first appears, and only a broken
//! disk or the end of the process can come between that and the last.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::error::UploadError;
use super::markdown::{self, Plan};
use super::name::{Names, place_of};
use super::shown::{Uploaded, UploadedFile};
use crate::config::UploadsConfig;
use crate::documents::DocumentReader;
use crate::ids::ThreadId;
use crate::sandbox::pending_file::Durability;
use crate::sandbox::{Fault, FileError, IncomingFile, ThreadFiles, VirtualPath};

/// The most that is repeated of a name that cannot be kept, in characters.
const LONGEST_NAME: usize = 255;

/// What may be uploaded, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadLimits {
    /// Files per request.
    pub max_files: u32,
    /// Bytes per file.
    pub max_file_size: u64,
    /// Bytes per request.
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

/// The files of one upload before they appear; dropped, they leave nothing behind.
#[derive(Debug)]
pub struct UploadBatch {
    files: ThreadFiles,
    limits: UploadLimits,
    coming: Vec<ComingUpload>,
    skipped: Vec<String>,
    names: Names,
    count: u32,
    bytes: u64,
}

/// A file of a batch that is being written.
#[derive(Debug)]
pub struct ComingUpload {
    file: IncomingFile,
    came_as: String,
}

impl UploadBatch {
    /// An upload to these files, within these limits.
    pub fn new(files: ThreadFiles, limits: UploadLimits) -> Self {
        Self {
            files,
            limits,
            coming: Vec::new(),
            skipped: Vec::new(),
            names: Names::default(),
            count: 0,
            bytes: 0,
        }
    }

    /// Whether no file ever began.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Begins a file that is called `raw` where it comes from; `None` when its name cannot be used or something else has it, which
    /// the answer tells.
    ///
    /// # Errors
    /// [`UploadError::TooMany`], and what the disk says.
    pub async fn begin(&mut self, raw: &str) -> Result<Option<ComingUpload>, UploadError> {
        self.count += 1;
        if self.count > self.limits.max_files {
            return Err(UploadError::TooMany(self.limits.max_files));
        }
        let begun = self.begun(raw).await?;
        if begun.is_none() {
            self.skipped.push(raw.chars().take(LONGEST_NAME).collect());
        }
        Ok(begun)
    }

    async fn begun(&mut self, raw: &str) -> Result<Option<ComingUpload>, FileError> {
        let Some(wanted) = place_of(raw) else {
            return Ok(None);
        };
        let came_as = wanted.file_name().to_owned();
        let Some(place) = self.names.claim(wanted) else {
            return Ok(None);
        };
        match self.files.begin_write(&place).await {
            Ok(file) => Ok(Some(ComingUpload { file, came_as })),
            Err(error) if is_occupied(&error, &place) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a piece to a file and gives the file back.
    ///
    /// # Errors
    /// [`UploadError::FileTooLarge`], [`UploadError::TooMuch`], and what the disk says.
    pub async fn write(
        &mut self,
        coming: ComingUpload,
        piece: Bytes,
    ) -> Result<ComingUpload, UploadError> {
        let ComingUpload { file, came_as } = coming;
        let length = piece.len() as u64;
        self.bytes += length;
        if file.written() + length > self.limits.max_file_size {
            return Err(UploadError::FileTooLarge(came_as));
        }
        if self.bytes > self.limits.max_total_size {
            return Err(UploadError::TooMuch);
        }
        Ok(ComingUpload {
            file: file.write(piece).await?,
            came_as,
        })
    }

    /// A file is whole.
    pub fn add(&mut self, whole: ComingUpload) {
        self.coming.push(whole);
    }

    /// Has all files appear, with the Markdown of documents beside them where `reader` makes some.
    ///
    /// # Errors
    /// [`UploadError::Nothing`] when no file ever began, and what the disk says.
    pub async fn appear(
        mut self,
        user: &str,
        thread: &ThreadId,
        reader: Option<&dyn DocumentReader>,
    ) -> Result<Uploaded, UploadError> {
        if self.is_empty() {
            return Err(UploadError::Nothing);
        }
        let mut settled = Vec::new();
        for ComingUpload { file, came_as } in self.coming {
            settled.push((file.settle().await?, came_as));
        }
        for (incoming, _) in &settled {
            // What was made of the document before this one says nothing of it.
            markdown::remove_of(&self.files, incoming.path()).await?;
        }
        let (mut files, mut plans) = (Vec::new(), Vec::new());
        for (incoming, came_as) in settled {
            let path = incoming.path().clone();
            plans.push(reader.and_then(|_| Plan::of(&path, &mut self.names)));
            let mut file =
                UploadedFile::of(thread, &path, incoming.finish(Durability::Synced).await?);
            file.original_filename = Some(came_as).filter(|came_as| path.file_name() != came_as);
            files.push(file);
        }
        if let Some(reader) = reader {
            for (file, markdown) in files
                .iter_mut()
                .zip(markdown::carry_out(&plans, reader, user, &self.files).await)
            {
                markdown
                    .into_iter()
                    .for_each(|markdown| markdown::show(file, thread, markdown));
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

/// Whether the place holds what an upload must not replace: a link, a directory, a file with a second name.
fn is_occupied(error: &FileError, place: &VirtualPath) -> bool {
    let occupied = matches!(
        error.fault(),
        Some(
            Fault::Symlink
                | Fault::HardLinked
                | Fault::IsDirectory
                | Fault::NotRegular
                | Fault::Permission
        )
    );
    if occupied {
        tracing::warn!(%error, %place, "an upload was left out");
    }
    occupied
}
