//! A thread's files, as `/threads/{t}/artifacts` hands them out.

use super::client::Client;
use super::error::ClientError;
use crate::artifacts::{Artifact, FileKind, artifact_path};
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;

/// The longest artifact that is handed out in one piece, in bytes.
pub const LARGEST_ARTIFACT: u64 = 256 * 1024 * 1024;

impl Client {
    /// The bytes of a file of a thread, or of one in a `.skill` archive among them, and its media type. `path` begins with
    /// `/mnt/user-data`; its first slash may be missing.
    ///
    /// # Errors
    /// [`ArtifactError`](crate::artifacts::ArtifactError) for a path that leads elsewhere or to no file, and for more than
    /// [`LARGEST_ARTIFACT`]; [`ClientError::Absent`].
    pub async fn get_artifact(
        &self,
        thread: &ThreadId,
        path: &str,
    ) -> Result<(Vec<u8>, String), ClientError> {
        let files = self
            .installation
            .files()?
            .thread(&effective_user_id(), thread);
        let path = artifact_path(path)?;
        let bytes = Artifact::open(&files, &path)
            .await?
            .read(&path, LARGEST_ARTIFACT)
            .await?;
        Ok((bytes, FileKind::of(path.file_name()).media_type))
    }
}
