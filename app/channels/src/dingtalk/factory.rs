//! Construction from settings.

use std::sync::Arc;

use super::api::Api;
use super::platform::DingTalkPlatform;
use super::settings::{Options, PROVIDER};
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Constructor of the DingTalk adapter.
#[derive(Debug, Clone, Copy, Default)]
pub struct DingTalkFactory;

impl PlatformFactory for DingTalkFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "DingTalk"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[
            CredentialField {
                name: "client_id",
                label: "Client ID",
                secret: false,
            },
            CredentialField {
                name: "client_secret",
                label: "Client secret",
                secret: true,
            },
        ]
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let api = Api::new(context.http.clone(), Options::read(settings)?);
        Ok(Arc::new(DingTalkPlatform::new(api)))
    }
}
