//! An artifact that is there: a file, or one in a `.skill` archive.

use std::fs::{File, Metadata};
use std::io::Read;

use super::error::ArtifactError;
use super::path::refused;
use crate::sandbox::files::off_the_runtime;
use crate::sandbox::{Fault, ThreadFiles, VirtualPath};
use crate::skills::archive::{ArchiveError, member};

/// Where a path goes on within an archive.
const IN_ARCHIVE: &str = ".skill/";

/// What was found at a path.
#[derive(Debug)]
pub struct Artifact {
    /// Its bytes.
    pub content: ArtifactContent,
    /// Of the file, or of the archive that it is in.
    pub facts: Metadata,
}

/// The bytes of an artifact.
#[derive(Debug)]
pub enum ArtifactContent {
    /// To be read.
    File(File),
    /// Out of an archive.
    Member(Vec<u8>),
}

impl Artifact {
    /// Opens what lies at a path, which may lead into an archive.
    ///
    /// # Errors
    /// Why there is nothing to be had.
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
        let is_missing = matches!(error.fault(), Some(Fault::NotFound | Fault::NotDirectory));
        let Some((archive, name)) = in_archive(path).filter(|_| is_missing) else {
            return Err(refused(error, path));
        };
        let (file, facts) = files
            .open_read(&archive)
            .await
            .map_err(|error| refused(error, path))?;
        let wanted = name.clone();
        let read = files
            .in_turn(move || Ok(member(file, &wanted)))
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

    /// All bytes, if they are `most` at most.
    ///
    /// # Errors
    /// [`ArtifactError::TooLarge`], and what the disk says of the file at `path`.
    pub async fn read(self, path: &VirtualPath, most: u64) -> Result<Vec<u8>, ArtifactError> {
        let bytes = match self.content {
            ArtifactContent::Member(bytes) => bytes,
            ArtifactContent::File(_) if self.facts.len() > most => {
                return Err(ArtifactError::TooLarge(most));
            }
            ArtifactContent::File(file) => {
                let read = move || {
                    let mut bytes = Vec::new();
                    // It may grow while it is read.
                    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
                    Ok(bytes)
                };
                off_the_runtime(read)
                    .await
                    .map_err(|fault| fault.at(path))?
            }
        };
        if bytes.len() as u64 > most {
            Err(ArtifactError::TooLarge(most))
        } else {
            Ok(bytes)
        }
    }
}

/// The archive with a skill that a path leads into, and the name of the file in it.
fn in_archive(path: &VirtualPath) -> Option<(VirtualPath, String)> {
    let path = path.to_string();
    let (archive, name) = path.split_once(IN_ARCHIVE)?;
    Some((
        VirtualPath::parse(&format!("{archive}.skill")).ok()?,
        name.to_owned(),
    ))
}
