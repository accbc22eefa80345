//! Construction of the adapter.

use std::sync::Arc;

use super::adapter::SlackPlatform;
use super::api::Api;
use super::links::Timing;
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Key in the configuration.
const PROVIDER: &str = "slack";

/// Constructor of the adapter of Slack.
///
/// Settings: `bot_token` and `app_token`, `api_base` (default `https://slack.com/api`), and
/// `dm_threads` (default `false`: all messages of a direct chat are one conversation; `true`: each
/// message begins one, and its thread continues it).
#[derive(Debug, Clone, Copy, Default)]
pub struct SlackFactory;

impl PlatformFactory for SlackFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "Slack"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[
            CredentialField {
                name: "bot_token",
                label: "Bot token",
                secret: true,
            },
            CredentialField {
                name: "app_token",
                label: "App token",
                secret: true,
            },
        ]
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let api = Api::new(
            context.http.clone(),
            settings.base(PROVIDER, "api_base", "https://slack.com/api")?,
            settings.secret(PROVIDER, "bot_token")?,
            settings.secret(PROVIDER, "app_token")?,
        );
        let dm_threads = settings.flag("dm_threads", false);
        let clock = context.clock.clone();
        Ok(Arc::new(SlackPlatform::new(
            api,
            clock,
            dm_threads,
            Timing::default(),
        )))
    }
}
