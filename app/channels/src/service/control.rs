//! Control of the channels by the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_domain::channels::{
    ChannelRuntime, ChannelRuntimeError, ChannelState, ChannelStatus, SETTINGS_ORDER,
};
use tokio::time::timeout;

use super::inspector::identify;
use super::parts::{Channel, ChannelService};
use super::profile;
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

    /// Returns the name of the bot as it was entered, as the configuration has it, or as the platform
    /// answered.
    fn bot_name(&self, provider: &str) -> Option<String> {
        let config = self.inner.channels_config();
        let configured = config.connections.get(provider);
        let channel = self.inner.channels.get(provider)?;
        self.settings(provider)
            .text("bot_username")
            .map(str::to_owned)
            .or_else(|| configured?.bot_username.clone())
            .or_else(|| channel.status.get().bot_name)
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
    fn connections_enabled(&self) -> bool {
        self.inner.channels_config().connections_enabled
    }

    async fn statuses(&self) -> Vec<ChannelStatus> {
        let config = self.inner.channels_config();
        let mut statuses: Vec<ChannelStatus> = self
            .inner
            .channels
            .values()
            .map(|channel| {
                let mut status = channel.status.get();
                let rules = config.connections.get(&status.provider);
                status.profile.connections = rules.is_some();
                status.profile.link = self
                    .bot_name(&status.provider)
                    .and_then(|name| channel.factory.link(&name));
                status
            })
            .collect();
        let now = self.inner.clock.now();
        let unsupported = config.connections.keys();
        statuses.extend(unsupported.filter_map(|provider| profile::of_unsupported(provider, now)));
        let position = |provider: &str| {
            SETTINGS_ORDER
                .iter()
                .position(|known| *known == provider)
                .unwrap_or(SETTINGS_ORDER.len())
        };
        statuses.sort_by_key(|status| position(&status.provider));
        statuses
    }

    async fn credentials(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, String>, ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        let settings = self.settings(provider);
        let fields = channel.factory.fields().iter();
        let mut values: BTreeMap<String, String> = fields
            .filter_map(|field| {
                let value = settings.text(field.name)?;
                Some((field.name.to_owned(), value.to_owned()))
            })
            .collect();
        for field in channel.factory.optional_fields() {
            if let Some(value) = self.bot_name(provider) {
                values.insert(field.name.to_owned(), value);
            }
        }
        Ok(values)
    }

    async fn configure(
        &self,
        provider: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), ChannelRuntimeError> {
        let channel = self.channel(provider)?;
        self.verify(provider, values.clone()).await?;
        let now = self.inner.clock.now();
        if self.inner.vault.of(provider).as_ref() == Some(&values) {
            return self.restart(provider).await;
        }
        self.inner
            .vault
            .put(provider, &values, now)
            .await
            .map_err(ChannelRuntimeError::Unavailable)?;
        channel.status.set(ChannelState::Connecting);
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
