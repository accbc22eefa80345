//! Where containers are made: the port that an engine and a provisioner keep, and what is ordered from them.

use std::fmt;

use async_trait::async_trait;
use reqwest::Url;
use sha2::{Digest, Sha256};

use super::error::ContainerError;

use crate::sandbox::command::Mount;
use crate::sandbox::thread_dirs::ThreadDirs;

/// Which container: the same for a user's thread at all times, so that one that is there is found again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SandboxId(String);

impl SandboxId {
    /// The id of a thread's container.
    pub(super) fn of(dirs: &ThreadDirs) -> Self {
        let (user, thread) = dirs.names();
        Self(digest(format!("{user}:{thread}").as_bytes()))
    }

    /// The id that a text is.
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

/// The first 16 hexadecimal digits of a SHA-256.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// A container that a thread needs.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) id: SandboxId,
    /// The name of the user's folder.
    pub(super) user: String,
    /// The thread.
    pub(super) thread: String,
    /// What it sees of the thread's user.
    pub(super) mounts: Vec<Mount>,
}

/// A container that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Where its API is.
    pub(super) url: Url,
    /// What it was made of, where that is known: another value needs another container.
    pub(super) made_of: Option<String>,
}

/// Makes containers. Every call comes to an end by itself.
#[async_trait]
pub(super) trait SandboxHost: fmt::Debug + Send + Sync + 'static {
    /// What a container for this order would be made of.
    fn recipe(&self, order: &Order) -> Option<String>;

    /// The containers that a former process left.
    async fn left_behind(&self) -> Result<Vec<(SandboxId, Place)>, ContainerError>;

    /// The container that is there for an order and runs.
    async fn find(&self, order: &Order) -> Result<Option<Place>, ContainerError>;

    /// Makes one. Something that is in its way and is this thread's goes.
    async fn make(&self, order: &Order) -> Result<Place, ContainerError>;

    /// Removes one; that there is none is fine.
    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError>;

    /// Whether it can be asked at all: its name and version.
    async fn look(&self) -> Result<String, ContainerError>;
}
