//! The acting user's threads, as `/threads` tells them.

use super::client::Client;
use super::error::ClientError;
use super::event::Question;
use crate::ids::ThreadId;
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::threads::ThreadView;

impl Client {
    /// At most `limit` threads, those that changed last first, with their titles.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when they cannot be read.
    pub async fn list_threads(&self, limit: usize) -> Result<Vec<ThreadView>, ClientError> {
        Ok(self
            .installation
            .threads()?
            .list(&effective_user_id(), limit)
            .await?)
    }

    /// One of them with its newest state, if there is one of this id.
    ///
    /// # Errors
    /// As [`list_threads`](Self::list_threads).
    pub async fn get_thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, ClientError> {
        Ok(self
            .installation
            .threads()?
            .get(&effective_user_id(), thread)
            .await?)
    }

    /// What a thread waits for a person to say, whoever asked it and when; [`resume`](Self::resume) answers it. Nothing where there is
    /// no such thread.
    ///
    /// # Errors
    /// As [`list_threads`](Self::list_threads).
    pub async fn open_questions(&self, thread: &ThreadId) -> Result<Vec<Question>, ClientError> {
        let tasks = self
            .get_thread(thread)
            .await?
            .map(|view| view.interrupts)
            .unwrap_or_default();
        let asked = tasks
            .into_values()
            .filter_map(|questions| serde_json::from_value::<Vec<Question>>(questions).ok());
        Ok(asked.flatten().collect())
    }
}
