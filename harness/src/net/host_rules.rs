//! Which hosts a proxy leads to. Pure.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::address::is_public;
use super::egress::{Ports, host_of};

/// The longest name of a host, in bytes.
const LONGEST_NAME: usize = 253;
/// What a host and its port may consist of: letters, digits, and the signs of names, addresses and ports. Everything else has, in some
/// parser, ended a name before its end.
const SIGNS: &[u8] = b"-._:[]";

/// The hosts that may be connected to through a proxy.
///
/// A listed name leads to public addresses alone, whatever it resolves to; others are listed themselves, as an address or a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules {
    /// `None` lets every public host be connected to.
    entries: Option<Vec<Entry>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// As it was written.
    text: String,
    hosts: Hosts,
    ports: EntryPorts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Name(String),
    /// All names below this one.
    Below(String),
    /// An address and how many of its bits count.
    Network(IpAddr, u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPorts {
    /// 80 and 443.
    Usual,
    Any,
    One(u16),
}

/// An entry of a list that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not {allowed}", allowed = Self::ALLOWED)]
pub struct BadEntry(pub String);

impl BadEntry {
    /// What an entry may be.
    pub const ALLOWED: &str = "a host (`example.org`, `*.example.org`, `example.org:8443`, `example.org:*`), an address or a network \
                               (`10.1.2.3:8080`, `10.0.0.0/8`, `[fd00::/8]:8080`)";
}

/// Where somebody wants to connect to: a host by one spelling, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name in lower case without a final dot, or its address.
    pub host: String,
    /// The address, where one was named.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

/// Why a connection is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// What was named is no host with a port.
    #[error("that is no host and port")]
    Malformed,
    /// It is not among the hosts that may be reached.
    #[error("{0} is not among the hosts that may be reached")]
    NotListed(Target),
    /// It leads to this machine, into a private network or to a reserved address.
    #[error("{0} leads to a loopback, private or reserved address")]
    Private(Target),
    /// The name is unknown.
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

/// The hosts as a list.
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
    /// Every public host, at the ports where web servers are.
    pub fn any_public() -> Self {
        Self { entries: None }
    }

    /// These alone. An entry is a host, `*.` and a name for all below it, an address or a network (`10.0.0.0/8`); a port after a colon
    /// or `*` for all, else 80 and 443.
    pub fn only<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, BadEntry> {
        let read = |entry: T| {
            Entry::read(entry.as_ref().trim()).ok_or_else(|| BadEntry(entry.as_ref().to_owned()))
        };
        Ok(Self {
            entries: Some(entries.into_iter().map(read).collect::<Result<_, _>>()?),
        })
    }

    /// The host and port that a client names, if they may be connected to as far as their form tells. `port` stands for one that is
    /// not named; without it, it has to be.
    pub fn target(&self, named: &str, port: Option<u16>) -> Result<Target, Denied> {
        let target = read_target(named, port).ok_or(Denied::Malformed)?;
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

    /// What a named target resolved to, if all of it may be connected to: a name that leads inside in part is meant to.
    pub fn judge(&self, target: &Target, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Denied> {
        if found.is_empty() {
            return Err(Denied::Unknown(target.clone()));
        }
        let may = |address: &IpAddr| is_public(*address) || self.lists(*address, target.port);
        if found.iter().all(may) {
            Ok(found)
        } else {
            Err(Denied::Private(target.clone()))
        }
    }

    /// Whether this very address is listed, by itself or by its network.
    pub fn lists(&self, address: IpAddr, port: u16) -> bool {
        self.entries
            .iter()
            .flatten()
            .any(|entry| entry.ports.include(port) && entry.hosts.has(address))
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
                let most = if address.is_ipv4() { 32 } else { 128 };
                Hosts::Network(address, bits.parse().ok().filter(|bits| *bits <= most)?)
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
            (network @ Hosts::Network(..), Some(address)) => network.has(address),
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
    /// Whether it is a network that the address lies in.
    fn has(&self, address: IpAddr) -> bool {
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

fn read_target(named: &str, port: Option<u16>) -> Option<Target> {
    if !named
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || SIGNS.contains(&byte))
    {
        return None;
    }
    let (host, port) = match named.rsplit_once(':') {
        Some((host, port)) if !named.ends_with(']') => (host, read_port(port)?),
        _ => (named, port?),
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

/// A host as URLs have it: every spelling of an IPv4 address reads the same, and names of other alphabets as they are looked up.
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
    // A single dot may end a name; `host_of` takes any number away.
    let labels_are_full = text
        .strip_suffix('.')
        .unwrap_or(text)
        .split(['.', '\u{3002}'])
        .all(|label| !label.is_empty());
    (!host.is_empty() && host.len() <= LONGEST_NAME && (text.starts_with('[') || labels_are_full))
        .then_some(host)
}

#[cfg(test)]
#[path = "host_rules_tests.rs"]
mod tests;
