//! Host with port as names of one server, and the origin of a page.

use std::fmt;
use std::net::IpAddr;

use axum::http::uri::Authority;

/// Host with its port. The default ports 80 and 443 count as none: a proxy may translate between
/// the schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// Address without brackets, or name in lower case without the trailing dot.
    pub(crate) name: String,
    /// Port other than 80 and 443.
    pub(crate) port: Option<u16>,
}

impl HostPort {
    /// Reads `host` or `host:port`; `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let authority = text.parse::<Authority>().ok()?;
        let name = normalized_name(authority.host());
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        let is_host = name.parse::<IpAddr>().is_ok() || (!name.is_empty() && is_name(&name));
        if authority.as_str().contains('@') || !is_host {
            return None;
        }
        Some(Self {
            name,
            port: authority.port_u16().filter(|port| is_explicit(*port)),
        })
    }

    /// Returns the same host with this port, if it has none.
    pub(crate) fn or_port(self, port: Option<u16>) -> Self {
        Self {
            port: self.port.or(port.filter(|port| is_explicit(*port))),
            ..self
        }
    }

    /// `true` for `localhost`, its subdomains and loopback addresses.
    pub(crate) fn is_loopback(&self) -> bool {
        self.name == "localhost"
            || self.name.ends_with(".localhost")
            || self.address().is_some_and(|address| address.is_loopback())
    }

    /// `true` if no page of another party can have this host by DNS: addresses, names of this
    /// machine, and names that only local name servers resolve.
    pub(crate) fn is_private(&self) -> bool {
        match self.address() {
            Some(address) => !address.is_unspecified(),
            None => {
                let labels: Vec<&str> = self.name.split('.').collect();
                labels.iter().all(|label| !label.is_empty())
                    && (labels.len() == 1
                        || PRIVATE_DOMAINS
                            .iter()
                            .any(|domain| self.name.ends_with(domain)))
            }
        }
    }

    fn address(&self) -> Option<IpAddr> {
        let address: IpAddr = self.name.parse().ok()?;
        Some(address.to_canonical())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.name),
            (true, None) => write!(f, "[{}]", self.name),
            (false, Some(port)) => write!(f, "{}:{port}", self.name),
            (false, None) => f.write_str(&self.name),
        }
    }
}

/// Domains that the public DNS does not delegate (RFC 6761, RFC 6762, RFC 8375, and the practice of
/// home routers).
const PRIVATE_DOMAINS: [&str; 6] = [
    ".localhost",
    ".local",
    ".lan",
    ".internal",
    ".home.arpa",
    ".localdomain",
];

fn is_explicit(port: u16) -> bool {
    port != 80 && port != 443
}

/// Origin of a page: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOrigin {
    /// `true` for `https`.
    pub(crate) is_https: bool,
    /// Host and port.
    pub(crate) host: HostPort,
}

impl PageOrigin {
    /// Reads the value of an `Origin` header; `None` for `null`, other schemes, and texts with a
    /// path, a query or a user.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Some(Self {
            is_https,
            host: HostPort::parse(host)?,
        })
    }
}

/// Normalises a name for comparison: addresses without brackets, names in lower case without the
/// trailing dot.
pub(crate) fn normalized_name(name: &str) -> String {
    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostPort {
        HostPort::parse(text).unwrap()
    }

    #[test]
    fn default_ports_count_as_none() {
        assert_eq!(host("deer.lan:80"), host("DEER.lan.:443"));
        assert_eq!(host("deer.lan"), host("deer.lan:443"));
        assert_ne!(host("deer.lan"), host("deer.lan:8001"));
        assert_ne!(host("deer.lan"), host("evil-deer.lan"));
        assert_eq!(host("[::1]:8001").to_string(), "[::1]:8001");
        assert_eq!(host("[::1]:80").to_string(), "[::1]");
        assert_eq!(host("deer.lan").or_port(Some(443)), host("deer.lan"));
        assert_eq!(host("deer.lan").or_port(Some(9)), host("deer.lan:9"));
        assert_eq!(host("deer.lan:8").or_port(Some(9)), host("deer.lan:8"));
    }

    #[test]
    fn text_that_is_no_host_is_refused() {
        for text in [
            "", ":80", "a b", "a@b", "a/b", "http://a", "a,b", "a?b", "a#b",
        ] {
            assert_eq!(HostPort::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_the_public_dns_are_not_private() {
        for (text, private) in [
            ("localhost", true),
            ("ui.localhost", true),
            ("box", true),
            ("box.lan", true),
            ("box.local.", true),
            ("box.home.arpa", true),
            ("192.168.1.5", true),
            ("8.8.8.8", true),
            ("[2001:db8::1]", true),
            ("0.0.0.0", false),
            ("[::]", false),
            ("evil.test", false),
            ("evil.example.com", false),
            ("lan.evil.com", false),
            ("localhost.evil.com", false),
            ("127.0.0.1.evil.com", false),
            (".lan", false),
        ] {
            let found = HostPort::parse(text).is_some_and(|host| host.is_private());
            assert_eq!(found, private, "{text}");
        }
    }

    #[test]
    fn origin_with_more_than_a_host_is_refused() {
        let origin = PageOrigin::parse("HTTPS://Deer.lan:443").unwrap();
        assert!(origin.is_https);
        assert_eq!(origin.host, host("deer.lan"));
        for text in [
            "null",
            "",
            "deer.lan",
            "http://",
            "http://deer.lan/",
            "http://deer.lan/x",
            "http://deer.lan?x",
            "http://a@deer.lan",
            "ftp://deer.lan",
            "chrome-extension://abc",
            "http:/deer.lan",
            "http://deer.lan http://evil.lan",
        ] {
            assert_eq!(PageOrigin::parse(text), None, "{text}");
        }
    }
}
