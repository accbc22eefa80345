//! Credentials of bots in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{InMemoryChannels, Sealed};
use crate::channels::{ChannelStoreError, CredentialStore, StoredCredentials};

#[async_trait]
impl CredentialStore for InMemoryChannels {
    async fn all(&self) -> Result<Vec<StoredCredentials>, ChannelStoreError> {
        let tables = self.0.lock();
        let stored = tables.credentials.iter().filter_map(|(provider, sealed)| {
            Some(StoredCredentials {
                provider: provider.clone(),
                sealed: sealed.text.clone()?,
                version: sealed.version,
                updated_at: sealed.updated_at,
            })
        });
        Ok(stored.collect())
    }

    async fn put(
        &self,
        provider: &str,
        sealed: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        let version = tables
            .credentials
            .get(provider)
            .map_or(0, |old| old.version)
            + 1;
        let entry = Sealed {
            text: Some(sealed.to_owned()),
            version,
            updated_at: at,
        };
        tables.credentials.insert(provider.to_owned(), entry);
        Ok(())
    }

    async fn delete(&self, provider: &str) -> Result<bool, ChannelStoreError> {
        let mut tables = self.0.lock();
        let removed = tables
            .credentials
            .get_mut(provider)
            .and_then(|entry| entry.text.take());
        Ok(removed.is_some())
    }
}
