//! Threads of the acting user, as `/threads` returns them.

use super::client::Client;
use super::error::ClientError;
use super::event::Question;
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::threads::ThreadView;

impl Client {
    /// Returns at most `limit` threads with their titles, the most recently changed first.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and an error if they cannot be read.
    pub async fn list_threads(&self, limit: usize) -> Result<Vec<ThreadView>, ClientError> {
        Ok(self
            .installation
            .threads()?
            .list(&effective_user_id(), limit)
            .await?)
    }

    /// Returns the thread of this id with its newest state, if there is one.
    ///
    /// # Errors
    /// The errors of [`list_threads`](Self::list_threads).
    pub async fn get_thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, ClientError> {
        Ok(self
            .installation
            .threads()?
            .get(&effective_user_id(), thread)
            .await?)
    }

    /// Returns all open interrupts of a thread, from any run; [`resume`](Self::resume) answers
    /// them. Empty for an unknown thread.
    ///
    /// # Errors
    /// The errors of [`list_threads`](Self::list_threads).
    pub async fn pending_interrupts(
        &self,
        thread: &ThreadId,
    ) -> Result<Vec<Question>, ClientError> {
        let tasks = self
            .get_thread(thread)
            .await?
            .map(|view| view.interrupts)
            .unwrap_or_default();
        let pending = tasks
            .into_values()
            .filter_map(|questions| serde_json::from_value::<Vec<Question>>(questions).ok());
        Ok(pending.flatten().collect())
    }

    #[doc(hidden)]
    #[deprecated(note = "use `pending_interrupts`")]
    pub async fn open_questions(&self, thread: &ThreadId) -> Result<Vec<Question>, ClientError> {
        self.pending_interrupts(thread).await
    }
}
