//! Decrypted credentials of all platforms, as the store has them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{ChannelStoreError, CredentialStore, StoredCredentials};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::key::{CredentialKey, KeyError};

/// Interval of polls for changes that other nodes made.
const POLL: Duration = Duration::from_secs(5);

/// Credentials by platform and field.
pub(super) type Credentials = BTreeMap<String, BTreeMap<String, String>>;

/// Decrypts the credentials of one platform.
pub(super) fn opened(
    key: &CredentialKey,
    stored: &StoredCredentials,
) -> Result<BTreeMap<String, String>, KeyError> {
    let text = key.open(&stored.sealed, &stored.provider)?;
    serde_json::from_str(&text).map_err(|_| KeyError::Undecipherable)
}

/// Credentials in memory. They are never logged.
pub(super) struct Vault {
    store: Arc<dyn CredentialStore>,
    key: CredentialKey,
    credentials: watch::Sender<Arc<Credentials>>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    pub(super) fn new(store: Arc<dyn CredentialStore>, key: CredentialKey) -> Self {
        Self {
            store,
            key,
            credentials: watch::Sender::new(Arc::default()),
        }
    }

    /// Subscribes to changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Credentials>> {
        self.credentials.subscribe()
    }

    /// Returns the fields of a platform.
    pub(super) fn of(&self, provider: &str) -> Option<BTreeMap<String, String>> {
        self.credentials.borrow().get(provider).cloned()
    }

    /// Reads the store.
    pub(super) async fn refresh(&self) -> Result<(), ChannelStoreError> {
        let mut credentials = Credentials::new();
        for stored in self.store.all().await? {
            match opened(&self.key, &stored) {
                Ok(fields) => {
                    credentials.insert(stored.provider, fields);
                }
                Err(error) => {
                    tracing::error!(channel = %stored.provider, %error, "enter the credentials again");
                }
            }
        }
        self.credentials.send_if_modified(|current| {
            let is_new = **current != credentials;
            if is_new {
                *current = Arc::new(credentials);
            }
            is_new
        });
        Ok(())
    }

    /// Encrypts and stores the fields of a platform.
    pub(super) async fn put(
        &self,
        provider: &str,
        fields: &BTreeMap<String, String>,
        at: DateTime<Utc>,
    ) -> Result<(), String> {
        let text = serde_json::to_string(fields).map_err(|error| error.to_string())?;
        let sealed = self
            .key
            .seal(&text, provider)
            .map_err(|error| error.to_string())?;
        self.store
            .put(provider, &sealed, at)
            .await
            .map_err(|error| error.to_string())?;
        self.refresh().await.map_err(|error| error.to_string())
    }

    /// Deletes the fields of a platform.
    pub(super) async fn delete(&self, provider: &str) -> Result<(), ChannelStoreError> {
        self.store.delete(provider).await?;
        self.refresh().await
    }

    /// Polls the store until `stop`.
    pub(super) async fn follow(&self, stop: &CancellationToken) {
        loop {
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "channel credentials cannot be read");
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = stop.cancelled() => return,
            }
        }
    }
}
