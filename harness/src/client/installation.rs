//! What a client can reach beside the runs.

use std::sync::Arc;

use super::error::ClientError;
use crate::config::{AppConfig, ConfigSource};
use crate::documents::DocumentReader;
#[cfg(feature = "mcp")]
use crate::mcp::settings::McpPort;
use crate::memory::Memories;
use crate::runtime::threads::ThreadIndex;
use crate::sandbox::FileHome;
use crate::skills::Skills;

/// What an installation has beside its runs, each part as the agents use it. A client that was not given a part says so
/// ([`ClientError::Absent`]) where it is asked for it.
#[derive(Debug, Clone, Default)]
pub struct Installation {
    /// The configuration in force.
    pub config: Option<Arc<dyn ConfigSource>>,
    /// The threads' files.
    pub files: Option<FileHome>,
    /// What makes Markdown of uploaded documents, where `uploads.auto_convert_documents` asks for it.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// What agents know how to do.
    pub skills: Option<Skills>,
    /// What is remembered about users.
    pub memories: Option<Memories>,
    /// The threads of users as they are listed, which goals belong to.
    pub threads: Option<Arc<dyn ThreadIndex>>,
    /// The servers that tools come from.
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

    pub(super) fn memories(&self) -> Result<&Memories, ClientError> {
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
