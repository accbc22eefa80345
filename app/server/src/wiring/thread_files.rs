//! What a thread has besides its rows: its files, and conversations with servers of tools.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_gateway::ports::{ThreadFilesError, ThreadFilesPort};
use harness::ids::ThreadId;
use harness::mcp::ConfiguredMcp;
use harness::sandbox::{FileHome, LeftThread, ThreadFiles};

/// The files of threads. With a thread's files its conversations go, whose programs would write there.
#[derive(Debug)]
pub(super) struct FilesAndServers {
    pub(super) files: FileHome,
    pub(super) mcp: Arc<ConfiguredMcp>,
}

#[async_trait]
impl ThreadFilesPort for FilesAndServers {
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

    async fn sweep(&self) -> Result<Vec<LeftThread>, ThreadFilesError> {
        ThreadFilesPort::sweep(&self.files).await
    }

    async fn delete_left(&self, left: LeftThread) -> Result<(), ThreadFilesError> {
        self.files.delete_left(left).await
    }
}
