//! Settings of the adapter.

use std::time::Duration;

use url::Url;

use crate::platform::{Settings, SettingsError};

/// Key of the platform in the configuration.
pub(super) const PROVIDER: &str = "discord";
/// Default base address of the REST API.
const API_BASE: &str = "https://discord.com/api/v10";

/// Pauses of the connection. Tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pauses {
    /// Minimum and maximum pause before a new session replaces an invalid one.
    pub(super) identify: (Duration, Duration),
    /// Pause before refused events are stored again.
    pub(super) store: Duration,
}

/// Settings of one bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Base address of the REST API.
    pub(super) api_base: Url,
    /// Address of the gateway, if it is configured.
    pub(super) gateway_url: Option<Url>,
    /// `true` to answer in a new thread per message of a channel.
    pub(super) thread_mode: bool,
    /// Pauses.
    pub(super) pauses: Pauses,
}

impl Options {
    /// Reads the settings.
    pub(super) fn read(settings: &Settings) -> Result<Self, SettingsError> {
        let gateway_url = match settings.text("gateway_url") {
            Some(address) => Some(settings.base(PROVIDER, "gateway_url", address)?),
            None => None,
        };
        let mention_only = settings.flag("mention_only", false);
        Ok(Self {
            api_base: settings.base(PROVIDER, "api_base", API_BASE)?,
            gateway_url,
            thread_mode: settings.flag("thread_mode", mention_only),
            pauses: Pauses {
                identify: (Duration::from_secs(1), Duration::from_secs(5)),
                store: Duration::from_secs(1),
            },
        })
    }
}

/// Returns a gateway address with the version and encoding, if it is a WebSocket address that uses
/// TLS or a loopback host.
pub(super) fn gateway_address(text: &str) -> Option<Url> {
    let settings = Settings(
        [("gateway_url".to_owned(), text.into())]
            .into_iter()
            .collect(),
    );
    let mut address = settings.base(PROVIDER, "gateway_url", text).ok()?;
    address.set_query(Some("v=10&encoding=json"));
    Some(address)
}
