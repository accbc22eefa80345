//! Memory of the acting user, as `/memory` returns it.

use super::client::Client;
use super::error::ClientError;
use crate::runtime::actor_context::effective_user_id;
use crate::user_memory::{
    FactChange, MemoryDocument, MemoryError, MemoryScope, MemoryStatus, MemoryView, import_issues,
};

impl Client {
    /// Returns the whole document, which is also the export format.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and the failure of the store.
    pub async fn get_memory(&self) -> Result<MemoryDocument, ClientError> {
        let read = self.installation.memories()?.read(&scope()).await;
        Ok(read.map_err(MemoryError::from)?.document)
    }

    /// Returns the same as [`get_memory`](Self::get_memory): nothing is cached that would have to
    /// be reloaded.
    ///
    /// # Errors
    /// The errors of [`get_memory`](Self::get_memory).
    pub async fn reload_memory(&self) -> Result<MemoryDocument, ClientError> {
        self.get_memory().await
    }

    /// Replaces the memory by a document and returns the result.
    ///
    /// # Errors
    /// [`ClientError::Import`] for a document that exceeds limits, and the errors of
    /// [`get_memory`](Self::get_memory).
    pub async fn import_memory(
        &self,
        document: MemoryDocument,
    ) -> Result<MemoryDocument, ClientError> {
        let memories = self.installation.memories()?;
        let issues = import_issues(&document);
        if !issues.is_empty() {
            return Err(ClientError::Import(issues));
        }
        Ok(memories.replace(&scope(), document).await?)
    }

    /// Adds a fact that the user stated explicitly and returns the memory. Over HTTP the default
    /// category is `context` and the default confidence 0.5.
    ///
    /// # Errors
    /// [`ClientError::Fact`] for fields that exceed limits, [`MemoryError::Duplicate`], and the
    /// errors of [`get_memory`](Self::get_memory).
    pub async fn create_memory_fact(
        &self,
        content: &str,
        category: &str,
        confidence: f64,
    ) -> Result<MemoryDocument, ClientError> {
        let memories = self.installation.memories()?;
        checked(&FactChange {
            content: Some(content.to_owned()),
            category: Some(category.to_owned()),
            confidence: Some(confidence),
        })?;
        Ok(memories
            .add(&scope(), content, category, confidence)
            .await?)
    }

    /// Changes the given fields of a fact and returns the memory.
    ///
    /// # Errors
    /// [`MemoryError::NoFact`], and the errors of [`create_memory_fact`](Self::create_memory_fact).
    pub async fn update_memory_fact(
        &self,
        id: &str,
        change: &FactChange,
    ) -> Result<MemoryDocument, ClientError> {
        let memories = self.installation.memories()?;
        checked(change)?;
        Ok(memories.correct(&scope(), id, change).await?)
    }

    /// Deletes a fact and returns the memory.
    ///
    /// # Errors
    /// [`MemoryError::NoFact`], and the errors of [`get_memory`](Self::get_memory).
    pub async fn delete_memory_fact(&self, id: &str) -> Result<MemoryDocument, ClientError> {
        Ok(self.installation.memories()?.remove(&scope(), id).await?)
    }

    /// Deletes all memories, including those of the user's custom agents, and returns the remaining
    /// memory.
    ///
    /// # Errors
    /// The errors of [`get_memory`](Self::get_memory).
    pub async fn clear_memory(&self) -> Result<MemoryDocument, ClientError> {
        Ok(self
            .installation
            .memories()?
            .forget_user(&effective_user_id())
            .await?)
    }

    /// Returns the memory configuration.
    ///
    /// # Errors
    /// [`ClientError::Absent`].
    pub fn get_memory_config(&self) -> Result<MemoryView, ClientError> {
        Ok(MemoryView::from(&self.installation.config()?.memory))
    }

    /// Returns the memory configuration and the memory.
    ///
    /// # Errors
    /// The errors of [`get_memory`](Self::get_memory).
    pub async fn get_memory_status(&self) -> Result<MemoryStatus, ClientError> {
        Ok(MemoryStatus {
            config: self.get_memory_config()?,
            data: self.get_memory().await?,
        })
    }
}

/// Returns an error for fields that exceed limits.
fn checked(change: &FactChange) -> Result<(), ClientError> {
    let issues = change.issues();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ClientError::Fact(issues))
    }
}

/// Scope of the acting user.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}
