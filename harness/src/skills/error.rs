//! What can go wrong with skills, in words that their user can act on.

use std::io;

use super::archive::ArchiveError;
use super::frontmatter::FrontmatterError;
use crate::config::ExtensionsError;
use crate::sandbox::Fault;

/// Why something could not be done with a skill. No text names a folder of the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// There is none of this name, or it is another user's.
    #[error("skill '{0}' not found")]
    NotFound(String),
    /// One of this name is there.
    #[error("skill '{0}' already exists")]
    Exists(String),
    /// The text is no skill.
    #[error("invalid SKILL.md: {0}")]
    Frontmatter(#[from] FrontmatterError),
    /// The archive is refused.
    #[error("invalid skill archive: {0}")]
    Archive(#[from] ArchiveError),
    /// What was asked for does not fit together.
    #[error("{0}")]
    Refused(String),
    /// Which skills are on cannot be read or kept.
    #[error(transparent)]
    Extensions(#[from] ExtensionsError),
    /// The disk does not do what it should.
    #[error("skills cannot be read or kept at the moment: {0}")]
    Disk(#[from] Fault),
}

impl From<io::Error> for SkillError {
    fn from(error: io::Error) -> Self {
        Fault::from(error).into()
    }
}
