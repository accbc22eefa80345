//! What is remembered about the acting user, as `/memory` tells it.

use super::client::Client;
use super::error::ClientError;
use crate::memory::{
    FactChange, MemoryDocument, MemoryError, MemoryScope, MemoryStatus, MemoryView, import_issues,
};
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

    /// Adds a fact that the user told outright, and gives what is remembered then. Over HTTP the category is `context` and the confidence
    /// a half where nobody says.
    ///
    /// # Errors
    /// [`ClientError::Fact`] for fields beyond limits, [`MemoryError::Duplicate`], and as [`get_memory`](Self::get_memory).
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

    /// Corrects a fact, and gives what is remembered then; what the change does not name stays.
    ///
    /// # Errors
    /// [`MemoryError::NoFact`], and as [`create_memory_fact`](Self::create_memory_fact).
    pub async fn update_memory_fact(
        &self,
        id: &str,
        change: &FactChange,
    ) -> Result<MemoryDocument, ClientError> {
        let memories = self.installation.memories()?;
        checked(change)?;
        Ok(memories.correct(&scope(), id, change).await?)
    }

    /// Takes a fact away, and gives what is remembered then.
    ///
    /// # Errors
    /// [`MemoryError::NoFact`], and as [`get_memory`](Self::get_memory).
    pub async fn delete_memory_fact(&self, id: &str) -> Result<MemoryDocument, ClientError> {
        Ok(self.installation.memories()?.remove(&scope(), id).await?)
    }

    /// Forgets everything, also what the user's own agents remember, and gives what is left.
    ///
    /// # Errors
    /// As [`get_memory`](Self::get_memory).
    pub async fn clear_memory(&self) -> Result<MemoryDocument, ClientError> {
        Ok(self
            .installation
            .memories()?
            .forget_user(&effective_user_id())
            .await?)
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
        Ok(MemoryStatus {
            config: self.get_memory_config()?,
            data: self.get_memory().await?,
        })
    }
}

/// Only a fact within limits is kept.
fn checked(change: &FactChange) -> Result<(), ClientError> {
    let issues = change.issues();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ClientError::Fact(issues))
    }
}

/// The acting user's own.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}
