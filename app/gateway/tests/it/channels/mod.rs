//! `/api/channels`: the settings page of chat platforms, over a fake channel service.

mod codes;
mod configuring;
mod listing;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use deerflow_domain::channels::{
    ChannelField, ChannelProfile, ChannelRuntime, ChannelRuntimeError, ChannelState, ChannelStatus,
    ConnectMode, ConnectionStore, ConsumedCode, ExternalIdentity, InMemoryChannels, code_hash,
};
use deerflow_gateway::ChannelServices;
use harness::clock::{Clock, SystemClock};
use parking_lot::Mutex;

use crate::support::Gateway;

/// Channel service under test.
#[derive(Debug, Default)]
struct Service(Mutex<Settings>);

/// Content of the service, which tests change.
#[derive(Debug, Default)]
struct Settings {
    is_disabled: bool,
    is_stopped: bool,
    statuses: Vec<ChannelStatus>,
    credentials: BTreeMap<String, BTreeMap<String, String>>,
    /// Error of the next control operation.
    refusal: Option<ChannelRuntimeError>,
    restarts: Vec<String>,
}

impl Settings {
    fn status(&mut self, provider: &str) -> &mut ChannelStatus {
        self.statuses
            .iter_mut()
            .find(|status| status.provider == provider)
            .expect("a known platform")
    }

    fn control(&mut self, provider: &str) -> Result<(), ChannelRuntimeError> {
        self.refusal.take().map_or(Ok(()), Err)?;
        self.statuses
            .iter()
            .any(|status| status.provider == provider)
            .then_some(())
            .ok_or_else(|| ChannelRuntimeError::Unknown(provider.to_owned()))
    }
}

#[async_trait]
impl ChannelRuntime for Service {
    fn is_running(&self) -> bool {
        !self.0.lock().is_stopped
    }

    fn connections_enabled(&self) -> bool {
        !self.0.lock().is_disabled
    }

    async fn statuses(&self) -> Vec<ChannelStatus> {
        self.0.lock().statuses.clone()
    }

    async fn credentials(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, String>, ChannelRuntimeError> {
        let found = self.0.lock().credentials.get(provider).cloned();
        Ok(found.unwrap_or_default())
    }

    async fn configure(
        &self,
        provider: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), ChannelRuntimeError> {
        let mut settings = self.0.lock();
        settings.control(provider)?;
        settings.credentials.insert(provider.to_owned(), values);
        let status = settings.status(provider);
        status.configured = true;
        status.state = ChannelState::Connected;
        Ok(())
    }

    async fn forget_credentials(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        let mut settings = self.0.lock();
        settings.control(provider)?;
        settings.credentials.remove(provider);
        let status = settings.status(provider);
        status.configured = false;
        status.state = ChannelState::Off;
        Ok(())
    }

    async fn restart(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        let mut settings = self.0.lock();
        settings.control(provider)?;
        settings.restarts.push(provider.to_owned());
        Ok(())
    }
}

fn field(name: &str, label: &str, secret: bool) -> ChannelField {
    ChannelField {
        name: name.to_owned(),
        label: label.to_owned(),
        secret,
    }
}

/// Returns a running channel.
fn running(provider: &str, name: &str, fields: Vec<ChannelField>) -> ChannelStatus {
    ChannelStatus {
        provider: provider.to_owned(),
        profile: ChannelProfile {
            display_name: name.to_owned(),
            supported: true,
            connections: true,
            connect_mode: ConnectMode::BindingCode,
            link: None,
            fields,
        },
        enabled: true,
        configured: true,
        state: ChannelState::Connected,
        account: Some("7".to_owned()),
        bot_name: Some("bot".to_owned()),
        since: DateTime::UNIX_EPOCH,
    }
}

/// Returns a service that has Telegram, Slack, Discord and WeChat.
fn service() -> Arc<Service> {
    let bot_token = || field("bot_token", "Bot token", true);
    let username = field("bot_username", "Bot username", false);
    let mut telegram = running("telegram", "Telegram", vec![bot_token(), username]);
    telegram.profile.connect_mode = ConnectMode::DeepLink;
    telegram.profile.link = Some("https://t.me/my_bot?start=".to_owned());
    let slack_fields = vec![bot_token(), field("app_token", "App token", true)];
    let mut slack = running("slack", "Slack", slack_fields);
    slack.configured = false;
    slack.state = ChannelState::Off;
    let mut discord = running("discord", "Discord", vec![bot_token()]);
    discord.profile.connections = false;
    let mut wechat = running("wechat", "WeChat", vec![bot_token()]);
    wechat.profile.supported = false;
    wechat.configured = false;
    wechat.state = ChannelState::Off;
    let values = [("bot_token", "1:canary"), ("bot_username", "my_bot")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Arc::new(Service(Mutex::new(Settings {
        statuses: vec![telegram, slack, discord, wechat],
        credentials: BTreeMap::from([("telegram".to_owned(), values.into())]),
        ..Settings::default()
    })))
}

/// Returns the services of a process with channels.
pub(crate) fn services() -> ChannelServices {
    ChannelServices {
        runtime: service(),
        connections: InMemoryChannels::stores().connections,
    }
}

/// Gateway with a channel service that has Telegram, Slack, Discord and WeChat.
struct Channels {
    gateway: Gateway,
    service: Arc<Service>,
    connections: Arc<dyn ConnectionStore>,
}

impl Channels {
    fn new() -> Self {
        let service = service();
        let connections = InMemoryChannels::stores().connections;
        let gateway = Gateway::new().with_channels(ChannelServices {
            runtime: service.clone(),
            connections: connections.clone(),
        });
        Self {
            gateway,
            service,
            connections,
        }
    }

    /// Sends a code to the bot as a person of Telegram.
    async fn send_code(&self, code: &str, person: &str) -> ConsumedCode {
        let identity = ExternalIdentity {
            provider: "telegram".to_owned(),
            account: person.to_owned(),
            workspace: String::new(),
        };
        let names = (Some(format!("@{person}")), None);
        self.connections
            .consume_code(&code_hash(code), &identity, names, SystemClock.now())
            .await
            .expect("written")
    }
}
