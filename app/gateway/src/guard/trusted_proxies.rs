//! Addresses of the proxies whose forwarded headers are believed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses and networks of trusted proxies; by default loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

/// Addresses that share the first `prefix` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Default for TrustedProxies {
    fn default() -> Self {
        Self(vec![
            Network {
                base: Ipv4Addr::new(127, 0, 0, 0).into(),
                prefix: 8,
            },
            Network {
                base: Ipv6Addr::LOCALHOST.into(),
                prefix: 128,
            },
        ])
    }
}

impl TrustedProxies {
    /// Reads a comma-separated list of addresses and networks (`10.0.0.0/8`). Returns the valid
    /// entries, and separately those that are neither.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let entries = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        let mut networks = Vec::new();
        let mut wrong = Vec::new();
        for entry in entries {
            match Network::parse(entry) {
                Some(network) => networks.push(network),
                None => wrong.push(entry.to_owned()),
            }
        }
        (Self(networks), wrong)
    }

    /// `true` if the proxy at this address is trusted.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (base, Some(prefix.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().ok()?;
        let bits = bits_of(base);
        let prefix = prefix.unwrap_or(bits);
        if prefix > bits {
            return None;
        }
        // An IPv4 network may be written in its IPv6 form.
        let canonical = base.to_canonical();
        let prefix = prefix.checked_sub(bits - bits_of(canonical))?;
        Some(Self {
            base: canonical,
            prefix,
        })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let (base, address, bits) = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => (
                u128::from(base.to_bits()),
                u128::from(address.to_bits()),
                32,
            ),
            (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits(), address.to_bits(), 128),
            _ => return false,
        };
        let rest = bits - u32::from(self.prefix);
        // A shift by all bits overflows: such a network contains every address of its family.
        rest == 128 || (base ^ address) >> rest == 0
    }
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(list: &str, address: &str) -> bool {
        let (proxies, wrong) = TrustedProxies::parse(list);
        assert_eq!(wrong, Vec::<String>::new());
        proxies.contains(address.parse().unwrap())
    }

    #[test]
    fn loopback_is_trusted_by_default() {
        let proxies = TrustedProxies::default();
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::2", false),
        ] {
            assert_eq!(proxies.contains(address.parse().unwrap()), expected);
        }
    }

    #[test]
    fn list_contains_addresses_and_networks() {
        for (list, address, expected) in [
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("10.0.0.0/8, 192.168.1.1", "10.255.1.2", true),
            ("10.0.0.0/8, 192.168.1.1", "11.0.0.0", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("172.16.0.0/12", "172.31.255.255", true),
            ("172.16.0.0/12", "172.32.0.0", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("10.0.0.7", "::ffff:10.0.0.7", true),
            ("", "127.0.0.1", false),
        ] {
            assert_eq!(contains(list, address), expected, "{list} {address}");
        }
    }

    #[test]
    fn wrong_entries_are_skipped_and_returned() {
        let (proxies, wrong) =
            TrustedProxies::parse("nginx, 10.0.0.0/33,10.0.0.1/x, 10.0.0.9,,::1/129");
        assert_eq!(wrong, ["nginx", "10.0.0.0/33", "10.0.0.1/x", "::1/129"]);
        assert!(proxies.contains("10.0.0.9".parse().unwrap()));
        assert!(!proxies.contains("127.0.0.1".parse().unwrap()));
    }
}
