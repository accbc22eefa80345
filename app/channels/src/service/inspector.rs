//! Inspection of configured channels by a process that does not serve them.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::channels::{ChannelRuntimeError, ChannelStoreError, CredentialStore};
use tokio::time::timeout;

use super::key::CredentialKey;
use super::vault::{Credentials, opened};
use crate::config::ChannelsConfig;
use crate::platform::{
    Identity, Platform, PlatformContext, PlatformError, PlatformFactory, Settings,
};

/// Timeout of the question who a bot is.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(15);

/// Configuration of one supported channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedChannel {
    /// Platform.
    pub provider: &'static str,
    /// Name for display.
    pub name: &'static str,
    /// `true` if the configuration or stored credentials switch it on.
    pub enabled: bool,
    /// Keys of missing credentials.
    pub missing: Vec<&'static str>,
    /// Reason why it cannot start with its settings; missing credentials may be one.
    pub problem: Option<String>,
}

/// Inspects configured channels. It neither starts nor changes anything.
#[derive(Debug)]
pub struct ChannelInspector {
    config: ChannelsConfig,
    platforms: Vec<Arc<dyn PlatformFactory>>,
    context: PlatformContext,
    credentials: Credentials,
    undecipherable: Vec<String>,
}

impl ChannelInspector {
    /// Creates an inspector that knows the configuration only.
    pub fn new(
        config: ChannelsConfig,
        platforms: Vec<Arc<dyn PlatformFactory>>,
        context: PlatformContext,
    ) -> Self {
        Self {
            config,
            platforms,
            context,
            credentials: Credentials::new(),
            undecipherable: Vec::new(),
        }
    }

    /// Reads the credentials that were entered in the settings page. Without a key they count as
    /// undecipherable.
    pub async fn read_credentials(
        &mut self,
        store: &dyn CredentialStore,
        key: Option<&CredentialKey>,
    ) -> Result<(), ChannelStoreError> {
        for stored in store.all().await? {
            match key.and_then(|key| opened(key, &stored).ok()) {
                Some(fields) => {
                    self.credentials.insert(stored.provider, fields);
                }
                None => self.undecipherable.push(stored.provider),
            }
        }
        Ok(())
    }

    /// Returns the platforms whose stored credentials cannot be decrypted.
    pub fn undecipherable(&self) -> &[String] {
        &self.undecipherable
    }

    /// Returns the supported channels in the order of the settings page.
    pub fn channels(&self) -> Vec<InspectedChannel> {
        self.platforms.iter().map(|one| self.inspect(one)).collect()
    }

    fn inspect(&self, factory: &Arc<dyn PlatformFactory>) -> InspectedChannel {
        let provider = factory.provider();
        let settings = self.settings(provider);
        let fields = factory.fields().iter().map(|field| field.name);
        InspectedChannel {
            provider,
            name: factory.display_name(),
            enabled: self.config.entry(provider).enabled || self.credentials.contains_key(provider),
            missing: fields
                .filter(|name| settings.text(name).is_none())
                .collect(),
            problem: factory
                .build(&settings, &self.context)
                .err()
                .map(|error| error.to_string()),
        }
    }

    /// Returns the channels that the configuration enables and this build does not support.
    pub fn unsupported(&self) -> Vec<&str> {
        let is_supported = |name: &str| self.platforms.iter().any(|known| known.provider() == name);
        self.config
            .channels
            .iter()
            .filter(|(name, entry)| entry.enabled && !is_supported(name))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    fn settings(&self, provider: &str) -> Settings {
        let stored = self.credentials.get(provider);
        self.config
            .entry(provider)
            .settings
            .with_fields(stored.cloned().unwrap_or_default())
    }

    /// Asks the platform who the bot of a channel is.
    ///
    /// # Errors
    /// [`ChannelRuntimeError::Unknown`] for an unsupported channel,
    /// [`ChannelRuntimeError::Refused`] if the settings are invalid or the platform rejects them,
    /// [`ChannelRuntimeError::Unavailable`] if it cannot be reached.
    pub async fn identify(&self, provider: &str) -> Result<Identity, ChannelRuntimeError> {
        let factory = self
            .platforms
            .iter()
            .find(|known| known.provider() == provider)
            .ok_or_else(|| ChannelRuntimeError::Unknown(provider.to_owned()))?;
        let platform = factory
            .build(&self.settings(provider), &self.context)
            .map_err(|error| ChannelRuntimeError::Refused(error.to_string()))?;
        identify(&*platform).await
    }
}

/// Asks a platform who its bot is, with a timeout.
pub(super) async fn identify(platform: &dyn Platform) -> Result<Identity, ChannelRuntimeError> {
    match timeout(IDENTIFY_TIMEOUT, platform.identify()).await {
        Ok(Ok(identity)) => Ok(identity),
        Ok(Err(error @ (PlatformError::Rejected(_) | PlatformError::Refused(_)))) => {
            Err(ChannelRuntimeError::Refused(error.to_string()))
        }
        Ok(Err(error)) => Err(ChannelRuntimeError::Unavailable(error.to_string())),
        Err(_) => Err(ChannelRuntimeError::Unavailable(
            "the platform did not answer in time".to_owned(),
        )),
    }
}

#[cfg(test)]
#[path = "inspector_tests.rs"]
mod tests;
