//! Address under which sign-in attempts are counted.

use std::fmt;
use std::net::IpAddr;

/// Client address for limits: an IPv4 address, or the /64 network of an IPv6 address, because one
/// client usually has a whole /64.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressKey(String);

impl AddressKey {
    /// Returns the key of an address. An IPv4 address that is mapped into IPv6 counts as IPv4.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_string()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(format!("{a:x}:{b:x}:{c:x}:{d:x}::/64"))
            }
        }
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_64_network_share_a_key() {
        let key = |text: &str| AddressKey::of(text.parse().unwrap());
        assert_eq!(key("2001:db8:0:1::7"), key("2001:db8:0:1:ffff::"));
        assert_ne!(key("2001:db8:0:1::7"), key("2001:db8:0:2::7"));
        assert_eq!(key("2001:db8:0:1::7").as_str(), "2001:db8:0:1::/64");
        assert_eq!(key("::ffff:10.0.0.7"), key("10.0.0.7"));
        assert_ne!(key("10.0.0.7"), key("10.0.0.8"));
    }
}
