//! Webhooks: the policy of allowed addresses, and the service that calls them when a run ends.

mod dead_letters;
mod receiver_limits;
mod sender;
mod signature;

pub use dead_letters::{address, dead_letter_json};
pub use sender::{SenderOptions, WebhookSender};
pub use signature::{BadSecret, SigningKey};

use std::sync::LazyLock;

use harness::net::{Egress, Forbidden, SystemLookup};
use reqwest::Url;

use crate::error::ApiError;

/// Shared by all requests, which limits concurrent lookups.
static LOOKUP: LazyLock<SystemLookup> = LazyLock::new(SystemLookup::default);

/// Policy of allowed webhook addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookPolicy {
    /// `true` if loopback and private hosts may be called.
    pub allow_private: bool,
}

/// Reasons why an address may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenUrl {
    /// The text is not an absolute HTTP URL.
    #[error("Invalid webhook hostname '{0}'")]
    NoHost(String),
    /// The URL contains a user name or a password.
    #[error("Webhook URLs must not carry credentials")]
    Credentials,
    /// The host is a loopback or private address.
    #[error("Webhook host '{0}' is a loopback or private address")]
    Private(String),
    /// The host name cannot be resolved.
    #[error("Webhook host '{0}' cannot be resolved")]
    Unknown(String),
}

impl WebhookPolicy {
    /// Parses an address and checks its form. Names are not resolved here.
    pub fn read(self, text: &str) -> Result<Url, ForbiddenUrl> {
        Ok(self.egress().read(text)?)
    }

    /// Rejects a forbidden address, with its name resolved now. The check is repeated before each
    /// call.
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
#[path = "mod_tests.rs"]
mod tests;
