//! Webhooks: which addresses a client may name, and the service that calls them when a run is over.

mod address;
mod hosts;
mod sender;
mod signature;

pub use sender::{SenderOptions, WebhookSender};
pub use signature::{BadSecret, SigningKey};

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;

use crate::error::ApiError;
use address::is_public;

/// How long a name may take to be resolved when a run is made.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);
/// The longest address.
const MOST_BYTES: usize = 65_536;

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
        let url = Url::parse(text).ok().filter(|url| text.len() <= MOST_BYTES && matches!(url.scheme(), "http" | "https"));
        let url = url.filter(|url| url.host_str().is_some_and(|host| !host.is_empty()));
        let Some(url) = url else { return Err(ForbiddenUrl::NoHost(String::new())) };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ForbiddenUrl::Credentials);
        }
        match literal(&url) {
            Some(address) if !self.allows(address) => Err(ForbiddenUrl::Private(host(&url))),
            _ => Ok(url),
        }
    }

    /// Whether `address` may be called.
    fn allows(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }

    /// Refuses an address that may not be called, with its name resolved as it is now. Before each call that is done again.
    pub async fn check(self, text: &str) -> Result<(), ApiError> {
        self.resolve(text).await.map_err(|forbidden| ApiError::Unprocessable(forbidden.to_string()))
    }

    async fn resolve(self, text: &str) -> Result<(), ForbiddenUrl> {
        let url = self.read(text)?;
        // Where private hosts are allowed there is nothing to find out.
        if self.allow_private || literal(&url).is_some() {
            return Ok(());
        }
        let name = host(&url);
        let lookup = tokio::net::lookup_host((name.as_str(), url.port_or_known_default().unwrap_or(443)));
        let found = tokio::time::timeout(RESOLVE_LIMIT, lookup).await.ok().and_then(Result::ok);
        let found: Vec<IpAddr> = found.into_iter().flatten().map(|address| address.ip()).collect();
        match found.iter().all(|address| self.allows(*address)) {
            _ if found.is_empty() => Err(ForbiddenUrl::Unknown(name)),
            true => Ok(()),
            false => Err(ForbiddenUrl::Private(name)),
        }
    }
}

/// The host without the brackets of an IPv6 address.
fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned()
}

/// The host's address, if it is written as one. In URLs every spelling of an IPv4 address (decimal, hexadecimal, short) reads so.
fn literal(url: &Url) -> Option<IpAddr> {
    host(url).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_http_addresses_may_be_named() {
        let strict = WebhookPolicy::default();
        for fine in ["https://example.com/hook", "http://93.184.216.34:8080/x?y=1", "https://[2606:2800:220:1::1]/", "http://name.test"] {
            assert!(strict.read(fine).is_ok(), "{fine}");
        }
        for bad in ["", "not a url", "/relative", "ftp://example.com", "http://", "file:///etc/passwd", "javascript:alert(1)"] {
            assert_eq!(strict.read(bad), Err(ForbiddenUrl::NoHost(String::new())), "{bad}");
        }
        assert_eq!(strict.read("https://ann:pw@example.com"), Err(ForbiddenUrl::Credentials));
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
            assert!(matches!(strict.read(private), Err(ForbiddenUrl::Private(_))), "{private}");
            assert!(WebhookPolicy { allow_private: true }.read(private).is_ok(), "{private}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_home_is_refused_as_well() {
        let strict = WebhookPolicy::default();
        assert_eq!(strict.resolve("http://localhost:1/").await, Err(ForbiddenUrl::Private("localhost".to_owned())));
        assert_eq!(
            strict.check("http://localhost/").await.map_err(|error| error.status(crate::dialect::Dialect::Platform)),
            Err(axum::http::StatusCode::UNPROCESSABLE_ENTITY)
        );
        assert_eq!(WebhookPolicy { allow_private: true }.resolve("http://localhost:1/").await, Ok(()));
    }
}
