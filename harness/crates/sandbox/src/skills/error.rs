//! Errors of skill operations, worded so that the user can act on them.

use std::io;

use super::archive::ArchiveError;
use super::frontmatter::FrontmatterError;
use crate::sandbox::FileFailure;
use deerflow_core::config::ExtensionsError;

/// Error of a skill operation. No text contains a host path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The skill does not exist, or belongs to another user.
    #[error("skill '{0}' not found")]
    NotFound(String),
    /// A skill of this name exists.
    #[error("skill '{0}' already exists")]
    Exists(String),
    /// The text is not a valid skill.
    #[error("invalid SKILL.md: {0}")]
    Frontmatter(#[from] FrontmatterError),
    /// The archive is rejected.
    #[error("invalid skill archive: {0}")]
    Archive(#[from] ArchiveError),
    /// The request is not possible.
    #[error("{0}")]
    Refused(String),
    /// The file with the enabled skills cannot be read or written.
    #[error(transparent)]
    Extensions(#[from] ExtensionsError),
    /// Disk error.
    #[error("skills cannot be read or stored: {0}")]
    Disk(#[from] FileFailure),
}

impl From<io::Error> for SkillError {
    fn from(error: io::Error) -> Self {
        FileFailure::from(error).into()
    }
}
