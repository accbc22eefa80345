//! Threads of a user with their runs, states and files.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::accounts::{DeletedData, UserData};
use deerflow_domain::threads::{Deleted, ThreadSearch, ThreadStore};
use deerflow_gateway::ports::ThreadFilesPort;
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::DeletedThreads;
use harness::runtime::runs::store::StoreError;

/// Threads per search.
const PAGE: usize = 100;

/// Threads of users, whose runs have ended.
#[derive(Debug)]
pub(crate) struct UserThreads {
    /// Rows.
    pub(crate) threads: Arc<dyn ThreadStore>,
    /// Files.
    pub(crate) files: Arc<dyn ThreadFilesPort>,
    /// Release of streams and states in memory; `None` for a command, whose process has none.
    pub(crate) in_memory: Option<DeletedThreads>,
}

#[async_trait]
impl UserData for UserThreads {
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
        let owner = Owner::User(user.to_owned());
        let page = ThreadSearch {
            limit: PAGE,
            ..ThreadSearch::default()
        };
        let mut count = 0;
        loop {
            let found = self.threads.search(&page, &owner).await?;
            if found.is_empty() {
                return Ok(DeletedData {
                    kind: "threads".to_owned(),
                    count,
                });
            }
            for thread in found {
                let thread = thread.thread_id;
                let runs = match &self.in_memory {
                    Some(in_memory) => in_memory.runs_of(&thread, &owner).await,
                    None => Vec::new(),
                };
                if self.threads.delete(&thread, &owner).await? == Deleted::Busy {
                    let text = format!("thread {thread} has an unfinished run");
                    return Err(StoreError::Unavailable(text));
                }
                if let Some(in_memory) = &self.in_memory {
                    in_memory.release([&thread], &runs).await;
                }
                self.delete_files(user, &thread).await;
                count += 1;
            }
        }
    }
}

impl UserThreads {
    /// Removes files and sandbox. What remains is removed with the folder of the user.
    async fn delete_files(&self, user: &str, thread: &ThreadId) {
        if let Err(error) = self.files.delete_thread(user, thread).await {
            tracing::warn!(thread_id = %thread, %error, "files of a deleted thread were not removed yet");
        }
    }
}
