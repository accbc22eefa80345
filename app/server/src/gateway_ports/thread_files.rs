//! Resources of a thread besides its rows: files and MCP sessions.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_gateway::ports::{ThreadFilesError, ThreadFilesPort};
use harness::ids::ThreadId;
use harness::mcp::ConfiguredMcp;
use harness::sandbox::{FileHome, OrphanedThread, ThreadFiles};

/// Files of threads. Deleting a thread's files also ends its MCP sessions, whose processes would
/// write there.
#[derive(Debug)]
pub(crate) struct ThreadResources {
    pub(crate) files: FileHome,
    pub(crate) mcp: Arc<ConfiguredMcp>,
}

#[async_trait]
impl ThreadFilesPort for ThreadResources {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        self.files.thread(user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        self.mcp.end_thread(user, thread).await;
        self.files.delete_thread(user, thread).await
    }

    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        noted: bool,
    ) -> Result<(), ThreadFilesError> {
        self.files.note_removal(user, thread, noted).await
    }

    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError> {
        ThreadFilesPort::sweep(&self.files).await
    }

    async fn delete_orphaned(&self, orphaned: OrphanedThread) -> Result<(), ThreadFilesError> {
        self.files.delete_orphaned(orphaned).await
    }
}
