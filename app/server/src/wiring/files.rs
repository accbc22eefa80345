//! The gateway's view of thread files.

use async_trait::async_trait;
use deerflow_gateway::ports::{ThreadFilesError, ThreadFilesPort};
use harness::ids::ThreadId;
use harness::sandbox::FileHome;

/// Thread files under the runtime home.
#[derive(Debug)]
pub(super) struct HomeFiles(pub(super) FileHome);

#[async_trait]
impl ThreadFilesPort for HomeFiles {
    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        let removed = self.0.thread(user, thread).remove_all().await;
        removed.map(|_| ()).map_err(|fault| ThreadFilesError(fault.to_string()))
    }
}
