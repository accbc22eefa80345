//! Problems of settings. Pure.

use super::origin::parse_base;
use super::settings::{PiMonoSettings, TransportKind};
use crate::adapter::ConfigFinding;

/// Code of a configuration without a model.
pub(super) const MISSING_MODEL: &str = "missing_model";

/// Returns all problems of the settings. No message contains a secret.
pub fn findings(settings: &PiMonoSettings) -> Vec<ConfigFinding> {
    let mut found = Vec::new();
    let mut add = |code: &str, key: &str, message: String| {
        found.push(ConfigFinding {
            code: code.to_owned(),
            key: key.to_owned(),
            message,
        });
    };
    if let Err(unknown) = &settings.transport {
        add("unknown_transport", "transport", unknown.to_string());
    }
    match &settings.base_url {
        None => add(
            "missing_base_url",
            "baseUrl",
            "no base URL is configured: set `adapterConfig.baseUrl`".to_owned(),
        ),
        Some(url) if parse_base(&url.value).is_none() => add(
            "invalid_base_url",
            "baseUrl",
            "the base URL is not an absolute http or https URL without credentials and query"
                .to_owned(),
        ),
        Some(_) => {}
    }
    if settings.transport == Ok(TransportKind::DeepSeek) {
        if settings.api_key.is_none() {
            add(
                "missing_api_key",
                "apiKey",
                "no API key is configured".to_owned(),
            );
        }
        if settings.model.is_none() {
            add(
                MISSING_MODEL,
                "model",
                "no model is configured: set `modelProfile.model`".to_owned(),
            );
        }
    }
    let is_application_key = settings
        .api_key
        .as_ref()
        .is_some_and(|key| !key.source.is_flow());
    if is_application_key && settings.base_url.is_some() && !settings.is_trusted() {
        add(
            "untrusted_base_url",
            "baseUrl",
            "the flow names a base URL that may not receive the API key of the application: set \
             `adapterConfig.apiKey` or allow its origin"
                .to_owned(),
        );
    }
    found
}
