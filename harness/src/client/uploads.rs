//! Uploads of a thread, as `/threads/{t}/uploads` returns them, but with host paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::client::Client;
use super::error::ClientError;
use super::host_file;
use crate::config::UploadsConfig;
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;
use crate::sandbox::{Root, ThreadFiles};
use crate::uploads::{
    PendingUpload, UploadBatch, UploadError, UploadLimits, UploadList, UploadRemoved, Uploaded,
    UploadedFile, list, remove, upload_path,
};

/// Size of one read, in bytes.
const READ_CHUNK_BYTES: usize = 64 * 1024;

impl Client {
    /// Copies host files to a thread, which need not exist yet. All files are added or none:
    /// invalid files are detected before anything is copied.
    ///
    /// # Errors
    /// [`ClientError::NotFound`], [`ClientError::NotAFile`] (also for directories),
    /// [`ClientError::Absent`], and [`UploadError`] if a limit is exceeded.
    pub async fn upload_files<P: AsRef<Path>>(
        &self,
        thread: &ThreadId,
        paths: &[P],
    ) -> Result<Uploaded, ClientError> {
        let user = effective_user_id();
        let files = self.installation.files()?.thread(&user, thread);
        let config = self.uploads_config();
        let limits = UploadLimits::from(&config);
        if paths.len() > usize::try_from(limits.max_files).unwrap_or(usize::MAX) {
            return Err(UploadError::TooMany(limits.max_files).into());
        }
        let mut opened = Vec::new();
        for path in paths {
            opened.push(open_named(path.as_ref().to_owned()).await?);
        }
        let mut batch = UploadBatch::new(files.clone(), limits);
        for (file, name, path) in opened {
            if let Some(pending) = batch.begin(&name).await? {
                let complete =
                    copy_to_upload(File::from_std(file), pending, &mut batch, path).await?;
                batch.add(complete);
            }
        }
        let reader = self
            .installation
            .documents
            .as_deref()
            .filter(|_| config.auto_convert_documents);
        let mut uploaded = batch.appear(&user, thread, reader).await?;
        uploaded
            .files
            .iter_mut()
            .for_each(|file| on_host(&files, file));
        Ok(uploaded)
    }

    /// Adds files from memory to a thread, which need not exist yet. All files are added or none. The
    /// result has the paths that agents see.
    ///
    /// # Errors
    /// [`ClientError::Absent`], [`ClientError::Quota`], and [`UploadError`] if a limit is exceeded.
    pub async fn upload_bytes(
        &self,
        thread: &ThreadId,
        contents: Vec<(String, Bytes)>,
    ) -> Result<Uploaded, ClientError> {
        let user = effective_user_id();
        let files = self.installation.files()?.thread(&user, thread);
        let config = self.uploads_config();
        let limits = UploadLimits::from(&config);
        if contents.len() > usize::try_from(limits.max_files).unwrap_or(usize::MAX) {
            return Err(UploadError::TooMany(limits.max_files).into());
        }
        let total = contents.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let reservation = match &self.installation.file_quota {
            Some(quota) => quota.reserve_all(&user, total).await?,
            None => None,
        };
        let mut batch = UploadBatch::new(files, limits);
        for (name, bytes) in contents {
            if let Some(pending) = batch.begin(&name).await? {
                let complete = batch.write(pending, bytes).await?;
                batch.add(complete);
            }
        }
        let reader = self
            .installation
            .documents
            .as_deref()
            .filter(|_| config.auto_convert_documents);
        let written = batch.bytes();
        let uploaded = batch.appear(&user, thread, reader).await?;
        if let Some(reservation) = reservation {
            reservation.finish(written);
        }
        Ok(uploaded)
    }

    /// Returns the uploads of a thread; empty for an unknown thread.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and an error if the disk cannot be read.
    pub async fn list_uploads(&self, thread: &ThreadId) -> Result<UploadList, ClientError> {
        let files = self
            .installation
            .files()?
            .thread(&effective_user_id(), thread);
        let mut uploads = list(&files, thread).await.map_err(UploadError::from)?;
        uploads
            .files
            .iter_mut()
            .for_each(|file| on_host(&files, file));
        Ok(uploads)
    }

    /// Deletes an upload, and the text that was extracted from it.
    ///
    /// # Errors
    /// [`UploadError::InvalidName`] for a name that contains a path, [`UploadError::NotFound`],
    /// [`UploadError::NotAFile`], and the errors of [`list_uploads`](Self::list_uploads).
    pub async fn delete_upload(
        &self,
        thread: &ThreadId,
        filename: &str,
    ) -> Result<UploadRemoved, ClientError> {
        let files = self
            .installation
            .files()?
            .thread(&effective_user_id(), thread);
        Ok(remove(&files, &upload_path(filename)?).await?)
    }

    /// Returns the configured settings, or the defaults.
    fn uploads_config(&self) -> UploadsConfig {
        self.installation
            .config()
            .map(|config| config.uploads.clone())
            .unwrap_or_default()
    }
}

/// Opens a host file and returns it with its name.
async fn open_named(path: PathBuf) -> Result<(std::fs::File, String, PathBuf), ClientError> {
    let file = host_file::open(path.clone()).await?;
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or(UploadError::InvalidName)?
        .to_owned();
    Ok((file, name, path))
}

async fn copy_to_upload(
    mut from: File,
    to: PendingUpload,
    batch: &mut UploadBatch,
    path: PathBuf,
) -> Result<PendingUpload, ClientError> {
    let (mut to, mut piece) = (to, vec![0; READ_CHUNK_BYTES]);
    loop {
        match from.read(&mut piece).await {
            Ok(0) => return Ok(to),
            Ok(read) => {
                to = batch
                    .write(to, Bytes::copy_from_slice(&piece[..read]))
                    .await?
            }
            Err(source) => return Err(ClientError::Unreadable { path, source }),
        }
    }
}

/// Replaces the paths that agents see by host paths.
fn on_host(files: &ThreadFiles, file: &mut UploadedFile) {
    let folder = files.blocking().dirs().host_path(Root::Uploads);
    file.path = folder.join(&file.filename).display().to_string();
    file.markdown_path = file
        .markdown_file
        .as_ref()
        .map(|name| folder.join(name).display().to_string());
}
