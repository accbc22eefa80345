//! Belief in forwarded headers by the address of the peer.

use super::*;

const LOOPBACK: &str = "127.0.0.1";
const PRIVATE: &str = "172.18.0.5";
const PUBLIC: &str = "203.0.113.9";

fn client(peer: &str, host: &str, headers: &[(&'static str, &str)]) -> WebClient {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    let peer = Some(Peer(peer.parse().unwrap()));
    WebClient::of(peer, Some(host), &headers, &TrustedProxies::default())
}

fn named(text: &str) -> Option<HostPort> {
    Some(HostPort::parse(text).unwrap())
}

#[test]
fn scheme_is_believed_from_private_peers_only() {
    for (peer, believed) in [
        (LOOPBACK, true),
        (PRIVATE, true),
        ("fd00::1", true),
        (PUBLIC, false),
    ] {
        for header in [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "HTTPS, http"),
            ("forwarded", "for=1.2.3.4;proto=https, proto=http"),
            ("forwarded", "for=\"a,b;proto=x\"; Proto=\"https\""),
        ] {
            let client = client(peer, "deer.lan", &[header]);
            assert_eq!(client.is_https, believed, "{peer} {header:?}");
        }
    }
    for header in [
        ("x-forwarded-proto", "http, https"),
        ("forwarded", "for=1.2.3.4, proto=https"),
        ("forwarded", "for=\"proto=https"),
    ] {
        assert!(
            !client(LOOPBACK, "deer.lan", &[header]).is_https,
            "{header:?}"
        );
    }
    let both = [("forwarded", "proto=http"), ("x-forwarded-proto", "https")];
    assert!(!client(LOOPBACK, "deer.lan", &both).is_https);
}

#[test]
fn host_and_address_are_believed_from_trusted_peers_only() {
    let headers = [
        ("x-forwarded-host", "deer.lan:3000"),
        ("x-real-ip", "10.9.9.9"),
    ];
    let trusted = client(LOOPBACK, "127.0.0.1:8001", &headers);
    assert_eq!(trusted.forwarded_host, named("deer.lan:3000"));
    assert_eq!(trusted.address, Some("10.9.9.9".parse().unwrap()));
    assert_eq!(trusted.unbelieved_host, None);
    for peer in [PRIVATE, PUBLIC] {
        let client = client(peer, "127.0.0.1:8001", &headers);
        assert_eq!(client.forwarded_host, None);
        assert_eq!(client.unbelieved_host, named("deer.lan:3000"));
        assert_eq!(client.address, Some(peer.parse().unwrap()));
    }
}

#[test]
fn forwarded_for_is_never_the_address() {
    let headers = [
        ("x-forwarded-for", "10.9.9.9"),
        ("forwarded", "for=10.9.9.9"),
    ];
    let client = client(LOOPBACK, "deer.lan", &headers);
    assert_eq!(client.address, Some(LOOPBACK.parse().unwrap()));
}

#[test]
fn forwarded_port_completes_host_without_port() {
    for (host, headers, expected) in [
        (
            "box",
            &[("x-forwarded-port", "2026")][..],
            named("box:2026"),
        ),
        ("box:81", &[("x-forwarded-port", "2026")], named("box:81")),
        ("box", &[("x-forwarded-port", "443")], named("box")),
        ("box", &[("x-forwarded-port", "x")], None),
        (
            "box",
            &[
                ("x-forwarded-port", "2026"),
                ("x-forwarded-host", "deer.lan"),
            ],
            named("deer.lan:2026"),
        ),
        (
            "box",
            &[("forwarded", "host=\"deer.lan:9\"")],
            named("deer.lan:9"),
        ),
        (
            "box",
            &[("x-forwarded-host", "deer.lan, other")],
            named("deer.lan"),
        ),
        ("box", &[("x-forwarded-host", "a b")], None),
    ] {
        assert_eq!(
            client(LOOPBACK, host, headers).forwarded_host,
            expected,
            "{headers:?}"
        );
    }
}

#[test]
fn port_is_lost_only_behind_a_nearby_proxy() {
    let real_ip = [("x-real-ip", "10.9.9.9")];
    assert!(client(LOOPBACK, "box", &real_ip).port_may_be_lost);
    assert!(client(PRIVATE, "box", &real_ip).port_may_be_lost);
    assert!(!client(PUBLIC, "box", &real_ip).port_may_be_lost);
    assert!(!client(LOOPBACK, "box:2026", &real_ip).port_may_be_lost);
    assert!(!client(LOOPBACK, "box", &[]).port_may_be_lost);
}

#[test]
fn browser_is_local_only_if_every_host_is() {
    assert!(client(LOOPBACK, "ui.localhost:3000", &[]).is_loopback());
    assert!(
        client(
            LOOPBACK,
            "127.0.0.1",
            &[("x-forwarded-host", "localhost:3000")]
        )
        .is_loopback()
    );
    for (peer, host, forwarded) in [
        (LOOPBACK, "deer.lan", "localhost"),
        (LOOPBACK, "localhost", "deer.lan"),
        (PUBLIC, "localhost", "deer.lan"),
    ] {
        assert!(!client(peer, host, &[("x-forwarded-host", forwarded)]).is_loopback());
    }
}

#[test]
fn only_direct_loopback_connection_is_local() {
    assert!(client(LOOPBACK, "localhost:8001", &[]).is_local());
    for (peer, host, headers) in [
        (PRIVATE, "localhost:8001", &[][..]),
        (LOOPBACK, "deer.lan:8001", &[]),
        (
            LOOPBACK,
            "localhost",
            &[("x-forwarded-host", "localhost:3000")],
        ),
        (LOOPBACK, "localhost", &[("x-real-ip", "127.0.0.1")]),
        (LOOPBACK, "localhost", &[("forwarded", "for=127.0.0.1")]),
    ] {
        assert!(
            !client(peer, host, headers).is_local(),
            "{peer} {host} {headers:?}"
        );
    }
}
