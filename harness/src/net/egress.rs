//! Which addresses may be named. Pure.

use std::net::IpAddr;

use reqwest::Url;

use super::address::is_public;

/// The longest address, in bytes.
const MOST_BYTES: usize = 65_536;

/// Names that mean this machine or the inside of a cloud, whatever they resolve to.
const INSIDE: &[&str] = &[
    "localhost",
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Ports above 1023 on which no web server is: browsers refuse these as well.
const NOT_WEB: &[u16] = &[
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669,
    6679, 6697, 10080,
];

/// Which hosts may be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Egress {
    /// Whether hosts of this machine and of private networks may be called.
    pub allow_private: bool,
    /// Hosts that may be called wherever they are and at any port: a name, `*.name` for all below it, or an address.
    pub hosts: Vec<String>,
    /// Which ports of all others may be called.
    pub ports: Ports,
}

/// Which ports may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// All.
    #[default]
    Any,
    /// 80, 443, and those from 1024 on that belong to no other protocol.
    Web,
}

/// Why an address may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// It is no absolute `http` or `https` address with a host.
    #[error("it is no absolute http or https address")]
    NoWebAddress,
    /// It carries a user's name or password.
    #[error("it carries credentials")]
    Credentials,
    /// No web server is expected there.
    #[error("port {0} may not be called")]
    Port(u16),
    /// It leads to this machine or into a private network.
    #[error("host '{0}' is a loopback, private or reserved address")]
    Private(String),
    /// The name is unknown.
    #[error("host '{0}' cannot be resolved")]
    Unknown(String),
}

impl Egress {
    /// The address that `text` names, if its form allows it. A name is not resolved here.
    pub fn read(&self, text: &str) -> Result<Url, Forbidden> {
        let url = Url::parse(text)
            .ok()
            .filter(|_| text.len() <= MOST_BYTES)
            .ok_or(Forbidden::NoWebAddress)?;
        self.check(&url)?;
        Ok(url)
    }

    /// As [`Egress::read`], of an address that was read already.
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

    /// Whether the host called `host` may be called at `address`.
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        self.allow_private || is_public(address) || self.trusts(host)
    }

    /// Picks what a name was resolved to: all of it, or nothing, since a name that leads home in part is meant to.
    pub fn judge(&self, host: &str, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Forbidden> {
        match found.iter().all(|address| self.allows(host, *address)) {
            _ if found.is_empty() => Err(Forbidden::Unknown(host.to_owned())),
            true => Ok(found),
            false => Err(Forbidden::Private(host.to_owned())),
        }
    }

    /// Whether somebody who may say so said that this host may be called.
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

/// The host as it is resolved: without the brackets of an IPv6 address and the dot that ends a full name. In URLs every spelling of
/// an IPv4 address (decimal, octal, hexadecimal, short) reads the same.
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
