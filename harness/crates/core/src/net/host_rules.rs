//! Rules for the hosts that a proxy may connect to. Pure.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::address::is_public;
use super::egress::{Ports, host_of};

/// Maximum length of a host name, in bytes.
const MAX_HOST_BYTES: usize = 253;
/// Non-alphanumeric bytes that may occur in a host and port. Some parsers end the host name at
/// other bytes.
const SIGNS: &[u8] = b"-._:[]";

/// Hosts that a proxy may connect to.
///
/// A listed name may resolve to public addresses only. Private targets must be listed by address or
/// network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules {
    /// `None` allows every public host.
    entries: Option<Vec<Entry>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// The entry as configured.
    text: String,
    hosts: Hosts,
    ports: EntryPorts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Name(String),
    /// All subdomains of this name.
    Below(String),
    /// An address and its prefix length in bits.
    Network(IpAddr, u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPorts {
    /// Default ports: 80 and 443.
    Usual,
    Any,
    One(u16),
}

/// Error: an entry of a host list is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not {allowed}", allowed = Self::ALLOWED)]
pub struct BadEntry(pub String);

impl BadEntry {
    /// Description of valid entries.
    pub const ALLOWED: &str = "a host (`example.org`, `*.example.org`, `example.org:8443`, `example.org:*`), an address or a network \
                               (`10.1.2.3:8080`, `10.0.0.0/8`, `[fd00::/8]:8080`)";
}

/// Host and port of a requested connection, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name in lower case without a final dot, or the address.
    pub host: String,
    /// The address if the client requested a literal address.
    pub address: Option<IpAddr>,
    /// Port number.
    pub port: u16,
}

/// Reason why a connection is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The request contains no valid host and port.
    #[error("not a valid host and port")]
    Malformed,
    /// The host is not listed.
    #[error("{0} is not among the hosts that may be reached")]
    NotListed(Target),
    /// The host is this machine, in a private network or at a reserved address.
    #[error("{0} leads to a loopback, private or reserved address")]
    Private(Target),
    /// The name cannot be resolved.
    #[error("{0} cannot be resolved")]
    Unknown(Target),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Writes the rules as a list of hosts.
impl fmt::Display for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entries.as_deref() {
            None => f.write_str("public hosts"),
            Some([]) => f.write_str("no hosts"),
            Some(entries) => f.write_str(
                &entries
                    .iter()
                    .map(|entry| entry.text.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        }
    }
}

impl HostRules {
    /// Allows every public host at ports 80 and 443.
    pub fn any_public() -> Self {
        Self { entries: None }
    }

    /// Allows only these entries. An entry is a host, `*.` and a name for all its subdomains, an
    /// address or a network (`10.0.0.0/8`), optionally followed by a colon and a port, or `*` for
    /// all ports. The default ports are 80 and 443.
    pub fn only<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, BadEntry> {
        let read = |entry: T| {
            Entry::read(entry.as_ref().trim()).ok_or_else(|| BadEntry(entry.as_ref().to_owned()))
        };
        Ok(Self {
            entries: Some(entries.into_iter().map(read).collect::<Result<_, _>>()?),
        })
    }

    /// Parses the host and port that a client requested and checks them against the rules. Does not
    /// resolve names. `port` is the default; without it the request must contain a port.
    pub fn target(&self, requested: &str, port: Option<u16>) -> Result<Target, Denied> {
        let target = read_target(requested, port).ok_or(Denied::Malformed)?;
        let listed = match (&self.entries, target.address) {
            (Some(entries), _) => entries.iter().any(|entry| entry.names(&target)),
            (None, Some(address)) if !is_public(address) => return Err(Denied::Private(target)),
            (None, _) => Ports::Web.allow(target.port),
        };
        if listed {
            Ok(target)
        } else {
            Err(Denied::NotListed(target))
        }
    }

    /// Checks the addresses that a target was resolved to. Returns all of them, or an error if one
    /// is forbidden: a name with one internal address may be an attack.
    pub fn check_resolved(
        &self,
        target: &Target,
        addresses: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, Denied> {
        if addresses.is_empty() {
            return Err(Denied::Unknown(target.clone()));
        }
        let may = |address: &IpAddr| is_public(*address) || self.lists(*address, target.port);
        if addresses.iter().all(may) {
            Ok(addresses)
        } else {
            Err(Denied::Private(target.clone()))
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `check_resolved`")]
    pub fn judge(&self, target: &Target, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Denied> {
        self.check_resolved(target, found)
    }

    /// Reports whether this address is listed, by itself or by its network.
    pub fn lists(&self, address: IpAddr, port: u16) -> bool {
        self.entries
            .iter()
            .flatten()
            .any(|entry| entry.ports.include(port) && entry.hosts.contains_address(address))
    }
}

impl Entry {
    fn read(text: &str) -> Option<Self> {
        let (host, ports) = match text.rsplit_once(':') {
            Some((host, "*")) => (host, EntryPorts::Any),
            Some((host, port))
                if !text.ends_with(']') && (!host.contains(':') || host.ends_with(']')) =>
            {
                (host, EntryPorts::One(read_port(port)?))
            }
            _ => (text, EntryPorts::Usual),
        };
        let inside = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .filter(|host| host.contains('/'));
        let host = inside.unwrap_or(host);
        let hosts = match (host.split_once('/'), host.strip_prefix("*.")) {
            (Some((address, bits)), _) => {
                let address: IpAddr = address.parse().ok()?;
                let max = if address.is_ipv4() { 32 } else { 128 };
                Hosts::Network(address, bits.parse().ok().filter(|bits| *bits <= max)?)
            }
            (None, Some(above)) => {
                Hosts::Below(read_host(above).filter(|host| host.parse::<IpAddr>().is_err())?)
            }
            (None, None) => {
                let bracketed = if host.parse::<std::net::Ipv6Addr>().is_ok() {
                    format!("[{host}]")
                } else {
                    host.to_owned()
                };
                let host = read_host(&bracketed)?;
                match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
                    Ok(address) => {
                        Hosts::Network(address, if address.is_ipv4() { 32 } else { 128 })
                    }
                    Err(_) => Hosts::Name(host),
                }
            }
        };
        Some(Self {
            text: text.to_owned(),
            hosts,
            ports,
        })
    }

    fn names(&self, target: &Target) -> bool {
        let host = match (&self.hosts, target.address) {
            (network @ Hosts::Network(..), Some(address)) => network.contains_address(address),
            (Hosts::Name(name), None) => *name == target.host,
            (Hosts::Below(above), None) => target
                .host
                .strip_suffix(above.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            _ => false,
        };
        host && self.ports.include(target.port)
    }
}

impl Hosts {
    /// Reports whether this is a network that contains the address.
    fn contains_address(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Self::Network(IpAddr::V4(network), bits), IpAddr::V4(address)) => {
                let differs = u32::from(*network) ^ u32::from(address);
                differs.checked_shr(32 - u32::from(*bits)).unwrap_or(0) == 0
            }
            (Self::Network(IpAddr::V6(network), bits), IpAddr::V6(address)) => {
                let differs = u128::from(*network) ^ u128::from(address);
                differs.checked_shr(128 - u32::from(*bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl EntryPorts {
    fn include(self, port: u16) -> bool {
        match self {
            Self::Usual => matches!(port, 80 | 443),
            Self::Any => true,
            Self::One(one) => one == port,
        }
    }
}

fn read_target(requested: &str, port: Option<u16>) -> Option<Target> {
    if !requested
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || SIGNS.contains(&byte))
    {
        return None;
    }
    let (host, port) = match requested.rsplit_once(':') {
        Some((host, port)) if !requested.ends_with(']') => (host, read_port(port)?),
        _ => (requested, port?),
    };
    let host = read_host(host)?;
    let address = host
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical());
    Some(Target {
        host: address.map_or(host, |address| address.to_string()),
        address,
        port,
    })
}

fn read_port(text: &str) -> Option<u16> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// Returns the canonical form of a host: one spelling per IPv4 address, and Punycode for
/// international names.
fn read_host(text: &str) -> Option<String> {
    if text.contains(['/', '?', '#', '@', '\\', '%', '*'])
        || text.chars().any(|c| c.is_whitespace() || c.is_control())
    {
        return None;
    }
    if !text.starts_with('[') && text.contains(':') {
        return None;
    }
    let host = host_of(&Url::parse(&format!("http://{text}/")).ok()?);
    // One trailing dot is valid; `host_of` removes any number of them.
    let labels_are_full = text
        .strip_suffix('.')
        .unwrap_or(text)
        .split(['.', '\u{3002}'])
        .all(|label| !label.is_empty());
    (!host.is_empty() && host.len() <= MAX_HOST_BYTES && (text.starts_with('[') || labels_are_full))
        .then_some(host)
}

#[cfg(test)]
#[path = "host_rules_tests.rs"]
mod tests;
