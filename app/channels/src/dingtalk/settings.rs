//! Settings of the adapter.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use crate::platform::{Settings, SettingsError};

/// Key of the platform in the configuration.
pub(super) const PROVIDER: &str = "dingtalk";
/// Default base address of the REST API.
const API_BASE: &str = "https://api.dingtalk.com";
/// Default base address of uploads.
const UPLOAD_BASE: &str = "https://oapi.dingtalk.com";

/// Intervals of the connection. Tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Intervals {
    /// Interval of pings.
    pub(super) ping: Duration,
    /// Silence after which the connection counts as dead.
    pub(super) silence: Duration,
    /// Pause before refused events are stored again.
    pub(super) store: Duration,
}

/// Settings of one robot.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// Client id, which is also the default code of the robot.
    pub(super) client_id: String,
    /// Client secret.
    pub(super) client_secret: SecretString,
    /// Base address of the REST API.
    pub(super) api_base: Url,
    /// Base address of uploads.
    pub(super) upload_base: Url,
    /// Template of cards with a text variable `content`; `None` if answers are not streamed.
    pub(super) card_template: Option<String>,
    /// Intervals.
    pub(super) intervals: Intervals,
}

impl Options {
    /// Reads the settings.
    pub(super) fn read(settings: &Settings) -> Result<Self, SettingsError> {
        let client_id = settings.text("client_id").ok_or_else(|| SettingsError {
            provider: PROVIDER,
            key: "client_id".to_owned(),
            problem: "is missing".to_owned(),
        })?;
        let api_base = settings.base(PROVIDER, "api_base", API_BASE)?;
        // Another server takes uploads too, unless it is configured otherwise.
        let uploads = match settings.text("api_base") {
            Some(address) if api_base.as_str().trim_end_matches('/') != API_BASE => address,
            _ => UPLOAD_BASE,
        };
        Ok(Self {
            client_id: client_id.to_owned(),
            client_secret: settings.secret(PROVIDER, "client_secret")?,
            upload_base: settings.base(PROVIDER, "oapi_base", uploads)?,
            api_base,
            card_template: settings.text("card_template_id").map(ToOwned::to_owned),
            intervals: Intervals {
                ping: Duration::from_secs(20),
                silence: Duration::from_secs(45),
                store: Duration::from_secs(1),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entries: &[(&str, &str)]) -> Options {
        let mut all = vec![("client_id", "c"), ("client_secret", "s")];
        all.extend(entries);
        let entries = all
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)));
        Options::read(&Settings(entries.collect())).unwrap()
    }

    #[test]
    fn uploads_follow_a_configured_server() {
        let upload = |entries: &[(&str, &str)]| read(entries).upload_base.to_string();
        assert_eq!(upload(&[]), "https://oapi.dingtalk.com/");
        assert_eq!(
            upload(&[("api_base", "https://api.dingtalk.com/")]),
            "https://oapi.dingtalk.com/"
        );
        assert_eq!(
            upload(&[("api_base", "http://127.0.0.1:4000")]),
            "http://127.0.0.1:4000/"
        );
    }

    #[test]
    fn missing_credentials_are_named() {
        let error = Options::read(&Settings::default()).unwrap_err();
        assert_eq!(error.to_string(), "channels.dingtalk.client_id: is missing");
    }
}
