//! Rules for the hosts that may be called. Pure.

use std::net::IpAddr;

use reqwest::Url;

use super::address::is_public;

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 65_536;

/// Names of this machine and of cloud-internal services. They are forbidden regardless of the
/// addresses that they resolve to.
const INSIDE: &[&str] = &[
    "localhost",
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Ports above 1023 that belong to other protocols. Browsers block them too.
const NOT_WEB: &[u16] = &[
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669,
    6679, 6697, 10080,
];

/// Rules for the hosts that may be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Egress {
    /// `true` if hosts of this machine and of private networks may be called.
    pub allow_private: bool,
    /// Hosts that may be called at any address and port: a name, `*.name` for all subdomains of a
    /// name, or an address.
    pub hosts: Vec<String>,
    /// Ports of all other hosts that may be called.
    pub ports: Ports,
}

/// Set of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// All ports.
    #[default]
    Any,
    /// 80, 443, and ports from 1024 on that belong to no other protocol.
    Web,
}

/// Reason why a URL may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// Not an absolute `http` or `https` URL with a host.
    #[error("it is not an absolute http or https URL")]
    NoWebAddress,
    /// The URL contains a user name or password.
    #[error("it carries credentials")]
    Credentials,
    /// The port belongs to another protocol.
    #[error("port {0} may not be called")]
    Port(u16),
    /// The host is this machine or in a private network.
    #[error("host '{0}' is a loopback, private or reserved address")]
    Private(String),
    /// The name cannot be resolved.
    #[error("host '{0}' cannot be resolved")]
    Unknown(String),
}

impl Egress {
    /// Parses a URL and checks its form. Does not resolve its name.
    pub fn read(&self, text: &str) -> Result<Url, Forbidden> {
        let url = Url::parse(text)
            .ok()
            .filter(|_| text.len() <= MAX_URL_BYTES)
            .ok_or(Forbidden::NoWebAddress)?;
        self.check(&url)?;
        Ok(url)
    }

    /// Checks the form of a parsed URL.
    pub fn check(&self, url: &Url) -> Result<(), Forbidden> {
        let host = host_of(url);
        if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
            return Err(Forbidden::NoWebAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Forbidden::Credentials);
        }
        if self.trusts(&host) {
            return Ok(());
        }
        if let Some(port) = url.port().filter(|port| !self.ports.allow(*port)) {
            return Err(Forbidden::Port(port));
        }
        let inside = || INSIDE.contains(&&*host) || host.ends_with(".localhost");
        match host.parse() {
            Ok(address) if !self.allows(&host, address) => Err(Forbidden::Private(host)),
            Err(_) if !self.allow_private && inside() => Err(Forbidden::Private(host)),
            _ => Ok(()),
        }
    }

    /// Reports whether `host` may be called at `address`.
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        self.allow_private || is_public(address) || self.trusts(host)
    }

    /// Checks the addresses that a name was resolved to. Returns all of them, or an error if one is
    /// forbidden: a name with one internal address may be an attack.
    pub fn check_resolved(
        &self,
        host: &str,
        addresses: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, Forbidden> {
        match addresses.iter().all(|address| self.allows(host, *address)) {
            _ if addresses.is_empty() => Err(Forbidden::Unknown(host.to_owned())),
            true => Ok(addresses),
            false => Err(Forbidden::Private(host.to_owned())),
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `check_resolved`")]
    pub fn judge(&self, host: &str, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Forbidden> {
        self.check_resolved(host, found)
    }

    /// Reports whether the configuration lists this host.
    fn trusts(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.hosts
            .iter()
            .map(|trusted| trusted.to_ascii_lowercase())
            .any(|trusted| match trusted.strip_prefix('*') {
                Some(above) => {
                    above.starts_with('.') && host.len() > above.len() && host.ends_with(above)
                }
                None => host == trusted,
            })
    }
}

impl Ports {
    pub(super) fn allow(self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Web => matches!(port, 80 | 443) || (port >= 1024 && !NOT_WEB.contains(&port)),
        }
    }
}

/// Returns the host in its canonical form: without the brackets of an IPv6 address and without
/// trailing dots. `Url` has already normalised every spelling of an IPv4 address (decimal, octal,
/// hexadecimal, short).
pub(super) fn host_of(url: &Url) -> String {
    url.host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']'])
        .trim_end_matches('.')
        .to_ascii_lowercase()
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
