//! Port through which the gateway controls the channel service of its process.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// State of a configured channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum ChannelState {
    /// Not enabled, or without credentials.
    Off,
    /// Connecting, for the first time or again.
    Connecting,
    /// This node serves the account.
    Connected,
    /// Another node serves the account.
    Elsewhere,
    /// The platform reports another poller or connection of the same bot.
    Displaced(String),
    /// Stopped until its configuration changes, with the reason.
    Failed(String),
}

/// Order of the platforms in the settings page. Other platforms follow.
pub const SETTINGS_ORDER: [&str; 8] = [
    "telegram", "slack", "discord", "feishu", "dingtalk", "wechat", "wecom", "buzz",
];

/// Way in which a person connects an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectMode {
    /// Through a link that opens the bot with the code.
    DeepLink,
    /// By sending the code to the bot.
    BindingCode,
}

impl ConnectMode {
    /// Returns the text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeepLink => "deep_link",
            Self::BindingCode => "binding_code",
        }
    }
}

/// Required credential of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelField {
    /// Key in the configuration.
    pub name: String,
    /// Label.
    pub label: String,
    /// `true` if its value is masked.
    pub secret: bool,
}

/// Description of a platform for the settings page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelProfile {
    /// Name for display.
    pub display_name: String,
    /// `false` if this build has no adapter for the platform.
    pub supported: bool,
    /// `true` if `channel_connections` enables the platform, so that users can connect.
    pub connections: bool,
    /// Way in which people connect.
    pub connect_mode: ConnectMode,
    /// Address that opens the bot, without the code at its end; `None` if there is none.
    pub link: Option<String>,
    /// Required credentials, in the order of the form.
    pub fields: Vec<ChannelField>,
}

/// Status of a channel in this process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Platform.
    pub provider: String,
    /// Description.
    pub profile: ChannelProfile,
    /// `true` if the configuration enables it.
    pub enabled: bool,
    /// `true` if all required credentials are present.
    pub configured: bool,
    /// State.
    pub state: ChannelState,
    /// Id of the bot, once it is known.
    pub account: Option<String>,
    /// Name of the bot, once it is known.
    pub bot_name: Option<String>,
    /// Time of the last change of the state.
    pub since: DateTime<Utc>,
}

impl ChannelStatus {
    /// `true` if some node serves the account.
    pub fn is_running(&self) -> bool {
        matches!(
            self.state,
            ChannelState::Connected | ChannelState::Elsewhere
        )
    }
}

/// Reason why a control operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelRuntimeError {
    /// The platform is unknown or not available in this build.
    #[error("unknown channel {0}")]
    Unknown(String),
    /// The channel cannot start with its configuration.
    #[error("{0}")]
    Refused(String),
    /// A store or the platform is unavailable.
    #[error("{0}")]
    Unavailable(String),
}

/// Controls the channels of an installation.
#[async_trait]
pub trait ChannelRuntime: Send + Sync + std::fmt::Debug {
    /// Returns `true` if the channel service runs in this process.
    fn is_running(&self) -> bool {
        true
    }

    /// Returns `true` if the configuration enables connections of users.
    fn connections_enabled(&self) -> bool;

    /// Returns the channels that this build knows, and unsupported ones that
    /// `channel_connections` enables, in [`SETTINGS_ORDER`].
    async fn statuses(&self) -> Vec<ChannelStatus>;

    /// Returns the credentials of a platform that are in effect, by field name, without masking.
    async fn credentials(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, String>, ChannelRuntimeError>;

    /// Verifies credentials with the platform, stores them and restarts the channel with them.
    ///
    /// # Errors
    /// [`ChannelRuntimeError::Refused`] if the platform refuses them; nothing is stored then.
    async fn configure(
        &self,
        provider: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), ChannelRuntimeError>;

    /// Deletes stored credentials and restarts the channel with those of the configuration.
    async fn forget_credentials(&self, provider: &str) -> Result<(), ChannelRuntimeError>;

    /// Restarts a channel: the connection is closed before a new one is opened.
    async fn restart(&self, provider: &str) -> Result<(), ChannelRuntimeError>;
}
