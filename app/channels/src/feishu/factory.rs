//! Constructor of the adapter.

use std::sync::Arc;

use super::adapter::FeishuPlatform;
use super::api::FeishuApi;
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Key in the configuration.
const PROVIDER: &str = "feishu";
/// Base address without a setting.
const DOMAIN: &str = "https://open.feishu.cn";

/// Constructor of bots on Feishu, and on Lark with `domain: https://open.larksuite.com`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FeishuFactory;

impl PlatformFactory for FeishuFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn display_name(&self) -> &'static str {
        "Feishu"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[
            CredentialField {
                name: "app_id",
                label: "App ID",
                secret: false,
            },
            CredentialField {
                name: "app_secret",
                label: "App secret",
                secret: true,
            },
        ]
    }

    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        let app_id = settings.text("app_id").ok_or_else(|| SettingsError {
            provider: PROVIDER,
            key: "app_id".to_owned(),
            problem: "is missing".to_owned(),
        })?;
        let api = FeishuApi::new(
            context.http.clone(),
            settings.base(PROVIDER, "domain", DOMAIN)?,
            app_id.to_owned(),
            settings.secret(PROVIDER, "app_secret")?,
            Arc::clone(&context.clock),
        );
        Ok(Arc::new(FeishuPlatform::new(api)))
    }
}
