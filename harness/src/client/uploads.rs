//! What users hand in, as `/threads/{t}/uploads` tells it, but for the paths: they are the host's here.

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
    ComingUpload, UploadBatch, UploadError, UploadLimits, UploadList, UploadRemoved, Uploaded,
    UploadedFile, list, place_named, remove,
};

/// How much is read at a time, in bytes.
const PIECE: usize = 64 * 1024;

impl Client {
    /// Copies files of the host to a thread, which need not be there yet. All of them appear or none: whatever is no file is found
    /// before anything is copied.
    ///
    /// # Errors
    /// [`ClientError::NotFound`], [`ClientError::NotAFile`] (also for directories), [`ClientError::Absent`], and [`UploadError`] for what
    /// goes beyond a limit.
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
            opened.push(named(path.as_ref().to_owned()).await?);
        }
        let mut batch = UploadBatch::new(files.clone(), limits);
        for (file, name, path) in opened {
            if let Some(coming) = batch.begin(&name).await? {
                let whole = copied(File::from_std(file), coming, &mut batch, path).await?;
                batch.add(whole);
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

    /// The uploads of a thread; none of one that is not there.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when the disk cannot be read.
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

    /// Removes an upload, and the text that was made of it.
    ///
    /// # Errors
    /// [`UploadError::InvalidName`] for a name with a way in it, [`UploadError::NotFound`], [`UploadError::NotAFile`], and as
    /// [`list_uploads`](Self::list_uploads).
    pub async fn delete_upload(
        &self,
        thread: &ThreadId,
        filename: &str,
    ) -> Result<UploadRemoved, ClientError> {
        let files = self
            .installation
            .files()?
            .thread(&effective_user_id(), thread);
        Ok(remove(&files, &place_named(filename)?).await?)
    }

    /// The configuration's, or what is usual.
    fn uploads_config(&self) -> UploadsConfig {
        self.installation
            .config()
            .map(|config| config.uploads.clone())
            .unwrap_or_default()
    }
}

/// A file of the host with the name that it goes by.
async fn named(path: PathBuf) -> Result<(std::fs::File, String, PathBuf), ClientError> {
    let file = host_file::open(path.clone()).await?;
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or(UploadError::InvalidName)?
        .to_owned();
    Ok((file, name, path))
}

async fn copied(
    mut from: File,
    to: ComingUpload,
    batch: &mut UploadBatch,
    path: PathBuf,
) -> Result<ComingUpload, ClientError> {
    let (mut to, mut piece) = (to, vec![0; PIECE]);
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

/// Says where a file lies for the embedding program, instead of where it lies for agents.
fn on_host(files: &ThreadFiles, file: &mut UploadedFile) {
    let folder = files.blocking().dirs().host_path(Root::Uploads);
    file.path = folder.join(&file.filename).display().to_string();
    file.markdown_path = file
        .markdown_file
        .as_ref()
        .map(|name| folder.join(name).display().to_string());
}
