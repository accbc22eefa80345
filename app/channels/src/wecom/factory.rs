//! Construction of the adapter from configuration.

use std::sync::Arc;
use std::time::Duration;

use harness::net::{Egress, GuardedClient, Ports, SystemLookup};

use super::adapter::WeComPlatform;
use super::listen::Account;
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Key of the platform in the configuration.
pub(super) const PROVIDER: &str = "wecom";
/// Address of the long connection.
const WS_URL: &str = "wss://openws.work.weixin.qq.com";
/// Timeout of a download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Factory of the WeCom adapter.
#[derive(Debug, Clone, Copy, Default)]
pub struct WeComFactory;

impl PlatformFactory for WeComFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "WeCom"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[
            CredentialField {
                name: "bot_id",
                label: "Bot ID",
                secret: false,
            },
            CredentialField {
                name: "bot_secret",
                label: "Bot secret",
                secret: true,
            },
        ]
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let invalid = |key: &str, problem: &str| SettingsError {
            provider: PROVIDER,
            key: key.to_owned(),
            problem: problem.to_owned(),
        };
        let bot_id = settings
            .text("bot_id")
            .ok_or_else(|| invalid("bot_id", "is missing"))?
            .to_owned();
        let secret = settings.secret(PROVIDER, "bot_secret")?;
        let address = settings.base(PROVIDER, "ws_url", WS_URL)?;
        // A bot on a loopback address serves its files there too; all other hosts must be public.
        let hosts = match (address.scheme(), address.host_str()) {
            ("ws" | "http", Some(host)) => vec![host.to_owned()],
            _ => Vec::new(),
        };
        let egress = Egress {
            allow_private: false,
            hosts,
            ports: Ports::Web,
        };
        let files = GuardedClient::new(egress, Arc::new(SystemLookup::default()), |client| {
            client.timeout(DOWNLOAD_TIMEOUT)
        })
        .map_err(|_| invalid("ws_url", "no HTTP client can be created for downloads"))?;
        let account = Account {
            bot_id,
            secret,
            address,
        };
        Ok(Arc::new(WeComPlatform::new(
            account,
            files,
            context.http.clone(),
            context.clock.clone(),
        )))
    }
}
