//! What is remembered about the acting user, as `/memory` tells it.

use super::client::Client;
use super::error::ClientError;
use crate::memory::{MemoryDocument, MemoryError, MemoryScope, MemoryStatus, MemoryView, import_issues};
use crate::runtime::actor_context::effective_user_id;

impl Client {
    /// The whole document; also for the export.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when the store fails.
    pub async fn get_memory(&self) -> Result<MemoryDocument, ClientError> {
        let read = self.installation.memories()?.read(&scope()).await;
        Ok(read.map_err(MemoryError::from)?.document)
    }

    /// The same: nothing is kept in between that would have to be read anew.
    ///
    /// # Errors
    /// As [`get_memory`](Self::get_memory).
    pub async fn reload_memory(&self) -> Result<MemoryDocument, ClientError> {
        self.get_memory().await
    }

    /// Puts a document in the place of what is remembered, and gives what is remembered then.
    ///
    /// # Errors
    /// [`ClientError::Import`] for a document beyond limits, and as [`get_memory`](Self::get_memory).
    pub async fn import_memory(&self, document: MemoryDocument) -> Result<MemoryDocument, ClientError> {
        let memories = self.installation.memories()?;
        let issues = import_issues(&document);
        if !issues.is_empty() {
            return Err(ClientError::Import(issues));
        }
        Ok(memories.replace(&scope(), document).await?)
    }

    /// Forgets everything, also what the user's own agents remember, and gives what is left.
    ///
    /// # Errors
    /// As [`get_memory`](Self::get_memory).
    pub async fn clear_memory(&self) -> Result<MemoryDocument, ClientError> {
        Ok(self.installation.memories()?.forget_user(&effective_user_id()).await?)
    }

    /// What is configured.
    ///
    /// # Errors
    /// [`ClientError::Absent`].
    pub fn get_memory_config(&self) -> Result<MemoryView, ClientError> {
        Ok(MemoryView::from(&self.installation.config()?.memory))
    }

    /// What is configured, and what is remembered.
    ///
    /// # Errors
    /// As [`get_memory`](Self::get_memory).
    pub async fn get_memory_status(&self) -> Result<MemoryStatus, ClientError> {
        Ok(MemoryStatus { config: self.get_memory_config()?, data: self.get_memory().await? })
    }
}

/// The acting user's own.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}
