//! Construction from settings.

use std::sync::Arc;

use super::platform::DiscordPlatform;
use super::rest::Rest;
use super::settings::{Options, PROVIDER};
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Constructor of the Discord adapter.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscordFactory;

impl PlatformFactory for DiscordFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "Discord"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[CredentialField {
            name: "bot_token",
            label: "Bot token",
            secret: true,
        }]
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let token = settings.secret(PROVIDER, "bot_token")?;
        let options = Options::read(settings)?;
        let rest = Rest::new(context.http.clone(), options.api_base.clone(), token);
        let platform = DiscordPlatform::new(rest, options, context.clock.clone());
        Ok(Arc::new(platform))
    }
}
