//! Classifies IP addresses as public, private or local.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Documentation addresses. A private network may use one of them, but no machine has all three.
const DOCUMENTATION_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(198, 51, 100, 1),
    Ipv4Addr::new(203, 0, 113, 1),
];
const DOCUMENTATION_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 1),
];

/// Reports whether `address` is reachable on the public internet, and not on this machine, in its
/// network or in a reserved range.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

/// Reports whether this machine has the address. Tests this by binding a port, which fails for
/// addresses of other machines.
pub fn is_own(address: IpAddr) -> bool {
    let can_bind = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    // On a machine with a transparent proxy, any address can be bound, so the test is not
    // conclusive.
    let can_bind_any = || match address {
        IpAddr::V4(_) => DOCUMENTATION_V4
            .into_iter()
            .all(|documentation| can_bind(documentation.into())),
        IpAddr::V6(_) => DOCUMENTATION_V6
            .into_iter()
            .all(|documentation| can_bind(documentation.into())),
    };
    can_bind(address) && !can_bind_any()
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT, protocol assignments, deprecated 6to4 relays, benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        // Host agent of Azure's virtual machines: an internal cloud service with a public address.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, _, _, fifth, sixth, ..] = address.segments();
    // Global unicast is 2000::/3, except Teredo and other protocols (2001::/23) and documentation
    // (2001:db8::/32, 3fff::/20).
    let global = first & 0xe000 == 0x2000;
    let special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        || (first == 0x3fff && second < 0x1000);
    // ISATAP interface, which embeds an IPv4 address of a site.
    let tunnel = matches!((fifth, sixth), (0 | 0x0200, 0x5efe));
    global && !special && !tunnel
}

/// Returns the IPv4 address in a mapped, compatible, translated (64:ff9b::/96) or 6to4 (2002::/16)
/// address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match (a, [b, c, d, e], f) {
        (0, [0, 0, 0, 0], 0 | 0xffff) | (0x64, [0xff9b, 0, 0, 0], 0) => Some(of(high, low)),
        (0x2002, _, _) => Some(of(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_own_accepts_loopback_and_rejects_remote_addresses() {
        assert!(is_own("127.0.0.1".parse().unwrap()));
        for other in ["8.8.8.8", "1.1.1.1", "2606:4700::1111"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn is_public_rejects_private_and_reserved_addresses() {
        for public in [
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "2002:0808:0808::1",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.9.9.9",
            "169.254.1.1",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "168.63.129.16",
            "2606:4700::5efe:a00:1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }
}
