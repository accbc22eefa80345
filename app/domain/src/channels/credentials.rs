//! Credentials of bots that an administrator entered in the settings page.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ChannelStoreError;

/// Encrypted credentials of one platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCredentials {
    /// Platform.
    pub provider: String,
    /// Ciphertext, as the channel service writes it.
    pub sealed: String,
    /// Grows with each change, so that other nodes notice it.
    pub version: i64,
    /// Time of the change.
    pub updated_at: DateTime<Utc>,
}

/// Stores encrypted credentials, one entry per platform.
#[async_trait]
pub trait CredentialStore: Send + Sync + std::fmt::Debug {
    /// Returns all entries, ordered by platform.
    async fn all(&self) -> Result<Vec<StoredCredentials>, ChannelStoreError>;

    /// Stores or replaces an entry and increments its version.
    async fn put(
        &self,
        provider: &str,
        sealed: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Deletes an entry; `false` if there was none.
    async fn delete(&self, provider: &str) -> Result<bool, ChannelStoreError>;
}
