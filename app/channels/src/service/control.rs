//! Control of the channels by the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_domain::channels::{ChannelRuntime, ChannelRuntimeError, ChannelState, ChannelStatus};
use tokio::time::timeout;

use super::inspector::identify;
use super::{Channel, ChannelService};
use crate::platform::Settings;

/// Time in which a restarted channel should have connected.
const START_TIMEOUT: Duration = Duration::from_secs(10);

impl ChannelService {
    fn channel(&self, provider: &str) -> Result<&Channel, ChannelRuntimeError> {
        self.inner
            .channels
            .get(provider)
            .ok_or_else(|| ChannelRuntimeError::Unknown(provider.to_owned()))
    }

    fn settings(&self, provider: &str) -> Settings {
        let settings = self.inner.channels_config().entry(provider).settings;
        settings.with_fields(self.inner.vault.of(provider).unwrap_or_default())
    }

    /// Asks the platform who the bot with these settings is.
    ///
    /// # Errors
    /// [`ChannelRuntimeError::Refused`] if the settings are invalid or the platform rejects them,
    /// [`ChannelRuntimeError::Unavailable`] if it cannot be reached.
    pub async fn verify(
        &self,
        provider: &str,
        values: BTreeMap<String, String>,
    ) -> Result<crate::platform::Identity, ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        let settings = self.settings(provider).with_fields(values);
        let platform = channel
            .factory
            .build(&settings, &self.inner.context)
            .map_err(|error| ChannelRuntimeError::Refused(error.to_string()))?;
        identify(&*platform).await
    }

    /// Waits until a channel has a definite state, at most for the start timeout.
    async fn settled(&self, channel: &Channel) {
        let mut status = channel.status.subscribe();
        let settled = status.wait_for(|status| {
            matches!(
                status.state,
                ChannelState::Connected
                    | ChannelState::Elsewhere
                    | ChannelState::Displaced(_)
                    | ChannelState::Failed(_)
            )
        });
        // After the timeout the caller sees the state as it is.
        let _ = timeout(START_TIMEOUT, settled).await;
    }
}

#[async_trait]
impl ChannelRuntime for ChannelService {
    async fn statuses(&self) -> Vec<ChannelStatus> {
        self.inner
            .order
            .iter()
            .map(|provider| self.inner.channels[provider].status.get())
            .collect()
    }

    async fn credentials(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, String>, ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        let settings = self.settings(provider);
        let fields = channel.factory.fields().iter();
        Ok(fields
            .filter_map(|field| {
                let value = settings.text(field.name)?;
                Some((field.name.to_owned(), value.to_owned()))
            })
            .collect())
    }

    async fn configure(
        &self,
        provider: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        self.verify(provider, values.clone()).await?;
        let now = self.inner.clock.now();
        channel.status.set(ChannelState::Connecting);
        self.inner
            .vault
            .put(provider, &values, now)
            .await
            .map_err(ChannelRuntimeError::Unavailable)?;
        self.settled(channel).await;
        Ok(())
    }

    async fn forget_credentials(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        self.channel(provider)?;
        self.inner
            .vault
            .delete(provider)
            .await
            .map_err(|error| ChannelRuntimeError::Unavailable(error.to_string()))
    }

    async fn restart(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        channel.status.set(ChannelState::Connecting);
        channel.restarts.send_modify(|count| *count += 1);
        self.settled(channel).await;
        Ok(())
    }
}
