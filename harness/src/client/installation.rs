//! Parts of an installation that a client can use outside of runs.

use std::sync::Arc;

use super::error::ClientError;
use crate::config::{AppConfig, ConfigSource};
use crate::documents::DocumentReader;
#[cfg(feature = "mcp")]
use crate::mcp::settings::McpPort;
use crate::runtime::threads::ThreadIndex;
use crate::sandbox::{FileHome, FileQuota};
use crate::skills::Skills;
use crate::user_memory::UserMemories;

/// Parts of an installation outside of runs, each as the agents use it. A method that needs a
/// missing part returns [`ClientError::Absent`].
#[derive(Debug, Clone, Default)]
pub struct Installation {
    /// Configuration in force.
    pub config: Option<Arc<dyn ConfigSource>>,
    /// Files of threads.
    pub files: Option<FileHome>,
    /// Quota of the files of each user, which uploads of files from memory respect.
    pub file_quota: Option<FileQuota>,
    /// Converter from uploaded documents to Markdown, used if `uploads.auto_convert_documents` is
    /// set.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// Skills of agents.
    pub skills: Option<Skills>,
    /// Memories of users.
    pub memories: Option<UserMemories>,
    /// Index of users' threads; also required for goals.
    pub threads: Option<Arc<dyn ThreadIndex>>,
    /// MCP servers.
    #[cfg(feature = "mcp")]
    pub mcp: Option<Arc<dyn McpPort>>,
}

impl Installation {
    pub(super) fn config(&self) -> Result<Arc<AppConfig>, ClientError> {
        Ok(present(&self.config, "configuration")?.current())
    }

    pub(super) fn files(&self) -> Result<&FileHome, ClientError> {
        present(&self.files, "files")
    }

    pub(super) fn skills(&self) -> Result<&Skills, ClientError> {
        present(&self.skills, "skills")
    }

    pub(super) fn memories(&self) -> Result<&UserMemories, ClientError> {
        present(&self.memories, "memories")
    }

    pub(super) fn threads(&self) -> Result<&dyn ThreadIndex, ClientError> {
        present(&self.threads, "threads").map(|index| &**index)
    }

    #[cfg(feature = "mcp")]
    pub(super) fn mcp(&self) -> Result<&dyn McpPort, ClientError> {
        present(&self.mcp, "MCP servers").map(|port| &**port)
    }
}

fn present<'a, T>(part: &'a Option<T>, what: &'static str) -> Result<&'a T, ClientError> {
    part.as_ref().ok_or(ClientError::Absent(what))
}
