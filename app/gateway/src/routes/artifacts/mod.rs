//! `/threads/{t}/artifacts/{path}`: a thread's files, with headers that make them safe to open in
//! the application's own origin.

mod body;
mod disposition;
mod get;
mod hash;
mod policy;
mod put;
mod range;
mod tag;

pub(crate) use get::get;
pub(crate) use put::put;

use harness::artifacts::ArtifactError;
use harness::skills::SkillError;
use harness::skills::archive::{ArchiveError, EntryProblem};

use crate::error::{ApiError, capitalized};

impl From<ArtifactError> for ApiError {
    fn from(error: ArtifactError) -> Self {
        let text = error.to_string();
        match error {
            ArtifactError::Traversal => Self::Forbidden(capitalized(&text)),
            ArtifactError::OutsideUserData | ArtifactError::NotAFile(_) => {
                Self::BadRequest(capitalized(&text))
            }
            ArtifactError::Path(_) => Self::BadRequest(text),
            ArtifactError::NotFound(_) | ArtifactError::NotInArchive(_) => {
                Self::NotFound(capitalized(&text))
            }
            ArtifactError::Archive(ArchiveError::Entry {
                problem: EntryProblem::Large,
                ..
            })
            | ArtifactError::TooLarge(_) => Self::FileTooLarge(text),
            ArtifactError::Archive(error) => SkillError::from(error).into(),
            ArtifactError::File(error) => error.into(),
            _ => Self::Internal(text),
        }
    }
}
