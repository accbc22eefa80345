//! An existing artifact: a file, or a file inside a `.skill` archive.

use std::fs::{File, Metadata};
use std::io::Read;

use super::error::ArtifactError;
use super::path::artifact_error;
use crate::sandbox::run_blocking;
use crate::sandbox::{FileFailure, ThreadFiles, VirtualPath};
use crate::skills::archive::{ArchiveError, member};

/// Separator between the path of an archive and the name of a file inside it.
const ARCHIVE_SEPARATOR: &str = ".skill/";

/// An opened artifact.
#[derive(Debug)]
pub struct Artifact {
    /// Its bytes.
    pub content: ArtifactContent,
    /// Metadata of the file, or of the archive that contains it.
    pub facts: Metadata,
}

/// Bytes of an artifact.
#[derive(Debug)]
pub enum ArtifactContent {
    /// An open file.
    File(File),
    /// A file read from an archive.
    Member(Vec<u8>),
}

impl Artifact {
    /// Opens the artifact at a path, which may lead into an archive.
    ///
    /// # Errors
    /// The reason why the artifact is not available.
    pub async fn open(files: &ThreadFiles, path: &VirtualPath) -> Result<Self, ArtifactError> {
        let error = match files.open_read(path).await {
            Ok((file, facts)) => {
                return Ok(Self {
                    content: ArtifactContent::File(file),
                    facts,
                });
            }
            Err(error) => error,
        };
        let is_missing = matches!(
            error.fault(),
            Some(FileFailure::NotFound | FileFailure::NotDirectory)
        );
        let Some((archive, name)) = in_archive(path).filter(|_| is_missing) else {
            return Err(artifact_error(error, path));
        };
        let (file, facts) = files
            .open_read(&archive)
            .await
            .map_err(|error| artifact_error(error, path))?;
        let member_name = name.clone();
        let read = files
            .run_limited(move || Ok(member(file, &member_name)))
            .await
            .unwrap_or_else(|fault| Err(ArchiveError::Disk(fault)));
        let content = read
            .map_err(ArtifactError::Archive)?
            .ok_or(ArtifactError::NotInArchive(name))?;
        Ok(Self {
            content: ArtifactContent::Member(content),
            facts,
        })
    }

    /// Reads all bytes, up to `max_bytes`.
    ///
    /// # Errors
    /// [`ArtifactError::TooLarge`], and disk errors for `path`.
    pub async fn read(self, path: &VirtualPath, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let bytes = match self.content {
            ArtifactContent::Member(bytes) => bytes,
            ArtifactContent::File(_) if self.facts.len() > max_bytes => {
                return Err(ArtifactError::TooLarge(max_bytes));
            }
            ArtifactContent::File(file) => {
                let read = move || {
                    let mut bytes = Vec::new();
                    // The file may grow while it is read.
                    file.take(max_bytes.saturating_add(1))
                        .read_to_end(&mut bytes)?;
                    Ok(bytes)
                };
                run_blocking(read).await.map_err(|fault| fault.at(path))?
            }
        };
        if bytes.len() as u64 > max_bytes {
            Err(ArtifactError::TooLarge(max_bytes))
        } else {
            Ok(bytes)
        }
    }
}

/// Splits a path that leads into a skill archive into the archive and the name of the file in it.
fn in_archive(path: &VirtualPath) -> Option<(VirtualPath, String)> {
    let path = path.to_string();
    let (archive, name) = path.split_once(ARCHIVE_SEPARATOR)?;
    Some((
        VirtualPath::parse(&format!("{archive}.skill")).ok()?,
        name.to_owned(),
    ))
}
