//! The acting user's threads, as `/threads` tells them.

use super::client::Client;
use super::error::ClientError;
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::threads::ThreadView;

impl Client {
    /// At most `limit` threads, those that changed last first, with their titles.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when they cannot be read.
    pub async fn list_threads(&self, limit: usize) -> Result<Vec<ThreadView>, ClientError> {
        Ok(self.installation.threads()?.list(&effective_user_id(), limit).await?)
    }

    /// One of them with its newest state, if there is one of this id.
    ///
    /// # Errors
    /// As [`list_threads`](Self::list_threads).
    pub async fn get_thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, ClientError> {
        Ok(self.installation.threads()?.get(&effective_user_id(), thread).await?)
    }
}
