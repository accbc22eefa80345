//! Port for creating containers, and the specification of a container.

use std::fmt;

use async_trait::async_trait;
use reqwest::Url;
use sha2::{Digest, Sha256};

use super::error::ContainerError;

use crate::sandbox::command::Mount;
use crate::sandbox::thread_dirs::ThreadDirs;

/// Container id, derived from user and thread, by which a later process finds an existing
/// container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SandboxId(String);

impl SandboxId {
    /// Returns the id of a thread's container.
    pub(super) fn of(dirs: &ThreadDirs) -> Self {
        let (user, thread) = dirs.names();
        Self(digest(format!("{user}:{thread}").as_bytes()))
    }

    /// Parses an id.
    pub(super) fn read(text: &str) -> Option<Self> {
        (text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
            .then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the first 16 hexadecimal digits of a SHA-256 digest.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// Specification of a thread's container.
#[derive(Debug, Clone)]
pub(super) struct ContainerSpec {
    pub(super) id: SandboxId,
    /// Name of the user's folder.
    pub(super) user: String,
    /// Thread id.
    pub(super) thread: String,
    /// Mounts of the user's thread.
    pub(super) mounts: Vec<Mount>,
}

/// Address of an existing container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerEndpoint {
    /// Address of its API.
    pub(super) url: Url,
    /// Digest of its specification, if known; a container with another digest must be recreated.
    pub(super) spec_digest: Option<String>,
}

/// Creates containers. Every call has its own timeout.
#[async_trait]
pub(super) trait SandboxHost: fmt::Debug + Send + Sync + 'static {
    /// Returns the digest of a container with this specification.
    fn spec_digest(&self, spec: &ContainerSpec) -> Option<String>;

    /// Returns the containers of earlier processes that are still running.
    async fn list_orphans(&self) -> Result<Vec<(SandboxId, ContainerEndpoint)>, ContainerError>;

    /// Returns the running container of a specification.
    async fn find(&self, spec: &ContainerSpec)
    -> Result<Option<ContainerEndpoint>, ContainerError>;

    /// Creates and starts a container. Replaces a stopped container of the same thread.
    async fn launch(&self, spec: &ContainerSpec) -> Result<ContainerEndpoint, ContainerError>;

    /// Removes a container; succeeds if there is none.
    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError>;

    /// Returns name and version of the host, to check that it responds.
    async fn version(&self) -> Result<String, ContainerError>;
}
