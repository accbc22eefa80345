//! Artifacts: files of a thread that are offered to clients.

mod error;
mod kind;
mod open;
mod path;
mod url;

pub use error::ArtifactError;
pub use kind::FileKind;
pub use open::{Artifact, ArtifactContent};
pub use path::{artifact_error, artifact_path};
pub use url::{artifact_url, percent_encoded};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::artifacts::artifact_error as refused;
