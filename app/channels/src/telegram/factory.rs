//! Construction from the configuration.

use std::sync::Arc;

use deerflow_domain::channels::ConnectMode;
use secrecy::ExposeSecret;

use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

use super::adapter::TelegramPlatform;
use super::api::BotApi;

/// Key of the platform in the configuration.
const PROVIDER: &str = "telegram";

/// Constructor of Telegram's adapter. Settings: `bot_token`, `api_base`, `rich_messages`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TelegramFactory;

impl PlatformFactory for TelegramFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "Telegram"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[CredentialField {
            name: "bot_token",
            label: "Bot token",
            secret: true,
        }]
    }

    fn optional_fields(&self) -> &'static [CredentialField] {
        &[CredentialField {
            name: "bot_username",
            label: "Bot username",
            secret: false,
        }]
    }

    fn connect_mode(&self) -> ConnectMode {
        ConnectMode::DeepLink
    }

    fn link(&self, bot_name: &str) -> Option<String> {
        let name = bot_name.trim().trim_start_matches('@');
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_');
        is_name.then(|| format!("https://t.me/{name}?start="))
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let token = settings.secret(PROVIDER, "bot_token")?;
        let is_valid = token
            .expose_secret()
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || ":_-".contains(character));
        if !is_valid {
            return Err(SettingsError {
                provider: PROVIDER,
                key: "bot_token".to_owned(),
                problem: "has characters that no token of BotFather has".to_owned(),
            });
        }
        let base = settings.base(PROVIDER, "api_base", "https://api.telegram.org")?;
        let api = BotApi::new(context.http.clone(), base, token);
        let rich_messages = settings.flag("rich_messages", false);
        Ok(Arc::new(TelegramPlatform::new(
            api,
            rich_messages,
            Arc::clone(&context.clock),
        )))
    }
}
