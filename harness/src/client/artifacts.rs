//! Artifacts of a thread, as `/threads/{t}/artifacts` returns them.

use super::client::Client;
use super::error::ClientError;
use crate::artifacts::{Artifact, FileKind, artifact_path};
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;

/// Maximum size of an artifact that is returned in one piece, in bytes.
pub const MAX_ARTIFACT_BYTES: u64 = 256 * 1024 * 1024;

impl Client {
    /// Returns the bytes and the media type of a file of a thread, or of a file inside one of its
    /// `.skill` archives. `path` begins with `/mnt/user-data`; its first slash is optional.
    ///
    /// # Errors
    /// [`ArtifactError`](crate::artifacts::ArtifactError) for a path outside of the thread's files,
    /// a path without a file, and a file of more than [`MAX_ARTIFACT_BYTES`];
    /// [`ClientError::Absent`].
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
            .read(&path, MAX_ARTIFACT_BYTES)
            .await?;
        Ok((bytes, FileKind::of(path.file_name()).media_type))
    }
}
