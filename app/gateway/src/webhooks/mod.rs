//! Webhooks: which addresses a client may name, and the service that calls them when a run is over.

mod hosts;
mod letters;
mod sender;
mod signature;

pub use letters::{address, letter_json};
pub use sender::{SenderOptions, WebhookSender};
pub use signature::{BadSecret, SigningKey};

use std::sync::LazyLock;

use harness::net::{Egress, Forbidden, SystemLookup};
use reqwest::Url;

use crate::error::ApiError;

/// All requests that name webhooks share its places.
static LOOKUP: LazyLock<SystemLookup> = LazyLock::new(SystemLookup::default);

/// Where runs may tell of their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookPolicy {
    /// Whether hosts of this machine and of private networks may be called.
    pub allow_private: bool,
}

/// Why an address may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenUrl {
    /// No absolute HTTP address.
    #[error("Invalid webhook hostname '{0}'")]
    NoHost(String),
    /// It carries a user's name or password.
    #[error("Webhook URLs must not carry credentials")]
    Credentials,
    /// It leads to this machine or into a private network.
    #[error("Webhook host '{0}' is a loopback or private address")]
    Private(String),
    /// The name is unknown.
    #[error("Webhook host '{0}' cannot be resolved")]
    Unknown(String),
}

impl WebhookPolicy {
    /// The address that `text` names, if its form allows it. A name is not resolved here.
    pub fn read(self, text: &str) -> Result<Url, ForbiddenUrl> {
        Ok(self.egress().read(text)?)
    }

    /// Refuses an address that may not be called, with its name resolved as it is now. Before each call that is done again.
    pub async fn check(self, text: &str) -> Result<(), ApiError> {
        self.resolve(text)
            .await
            .map_err(|forbidden| ApiError::Unprocessable(forbidden.to_string()))
    }

    async fn resolve(self, text: &str) -> Result<(), ForbiddenUrl> {
        self.egress().resolve(&*LOOKUP, text).await?;
        Ok(())
    }

    pub(crate) fn egress(self) -> Egress {
        Egress {
            allow_private: self.allow_private,
            ..Egress::default()
        }
    }
}

impl From<Forbidden> for ForbiddenUrl {
    fn from(forbidden: Forbidden) -> Self {
        match forbidden {
            Forbidden::NoWebAddress | Forbidden::Port(_) => Self::NoHost(String::new()),
            Forbidden::Credentials => Self::Credentials,
            Forbidden::Private(host) => Self::Private(host),
            Forbidden::Unknown(host) => Self::Unknown(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_http_addresses_may_be_named() {
        let strict = WebhookPolicy::default();
        for fine in [
            "https://example.com/hook",
            "http://93.184.216.34:8080/x?y=1",
            "https://[2606:2800:220:1::1]/",
            "http://name.test",
        ] {
            assert!(strict.read(fine).is_ok(), "{fine}");
        }
        for bad in [
            "",
            "not a url",
            "/relative",
            "ftp://example.com",
            "http://",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ] {
            assert_eq!(
                strict.read(bad),
                Err(ForbiddenUrl::NoHost(String::new())),
                "{bad}"
            );
        }
        assert_eq!(
            strict.read("https://ann:pw@example.com"),
            Err(ForbiddenUrl::Credentials)
        );
        for private in [
            "http://127.0.0.1",
            "http://2130706433/",
            "http://0x7f.1",
            "http://0",
            "http://10.1.2.3",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fd00::1]/",
            "http://[64:ff9b::7f00:1]/",
        ] {
            assert!(
                matches!(strict.read(private), Err(ForbiddenUrl::Private(_))),
                "{private}"
            );
            assert!(
                WebhookPolicy {
                    allow_private: true
                }
                .read(private)
                .is_ok(),
                "{private}"
            );
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_home_is_refused_as_well() {
        let strict = WebhookPolicy::default();
        assert_eq!(
            strict.resolve("http://localhost:1/").await,
            Err(ForbiddenUrl::Private("localhost".to_owned()))
        );
        assert_eq!(
            strict
                .check("http://localhost/")
                .await
                .map_err(|error| error.status(crate::dialect::Dialect::Platform)),
            Err(axum::http::StatusCode::UNPROCESSABLE_ENTITY)
        );
        assert_eq!(
            WebhookPolicy {
                allow_private: true
            }
            .resolve("http://localhost:1/")
            .await,
            Ok(())
        );
    }
}
