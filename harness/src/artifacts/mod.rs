//! Artifacts: what lies among a thread's files, for whoever looks at them from outside.

mod error;
mod kind;
mod open;
mod path;

pub use error::ArtifactError;
pub use kind::FileKind;
pub use open::{Artifact, ArtifactContent};
pub use path::{artifact_path, artifact_url, percent_encoded, refused};
