//! Requests of all kinds of pages and programs.

use super::*;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::guard::web_client::Peer;

fn origin_policy() -> OriginPolicy {
    OriginPolicy::new(
        Hosts::LoopbackAnd(vec!["Deer.example.com".to_owned()]),
        vec!["https://ui.test".to_owned()],
    )
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect()
}

fn client(peer: &str, host: &str, headers: &HeaderMap) -> WebClient {
    let peer = Some(Peer(peer.parse().unwrap()));
    WebClient::of(peer, Some(host), headers, &TrustedProxies::default())
}

#[test]
fn host_of_another_party_is_refused_without_session() {
    let allowed = |policy: &OriginPolicy, host: &str, extra: &[(&'static str, &str)]| {
        let client = client("127.0.0.1", host, &headers(extra));
        policy.check_host(Some(host), &client).is_ok()
    };
    for (host, expected) in [
        ("localhost", true),
        ("LOCALHOST:8001", true),
        ("localhost.:8001", true),
        ("127.0.0.1:8001", true),
        ("127.8.8.8", true),
        ("[::1]", true),
        ("[::1]:8001", true),
        ("[::ffff:127.0.0.1]:8001", true),
        ("deer.example.com:8001", true),
        ("192.168.1.5:2026", true),
        ("box:2026", true),
        ("box.lan:2026", true),
        ("evil.test", false),
        ("evil.test:8001", false),
        ("evil-deer.example.com", false),
        ("localhost.evil.test", false),
        ("127.0.0.1.evil.test", false),
        ("localhost@evil.test", false),
        ("evil.test@localhost", false),
        ("0.0.0.0:8001", false),
        ("[::]:8001", false),
        ("", false),
        ("a b", false),
    ] {
        assert_eq!(allowed(&origin_policy(), host, &[]), expected, "{host:?}");
        assert!(allowed(&OriginPolicy::new(Hosts::Any, vec![]), host, &[]));
        let all = OriginPolicy::new(Hosts::LoopbackAnd(vec!["*".to_owned()]), vec![]);
        assert_eq!(allowed(&all, host, &[]), HostPort::parse(host).is_some());
        if HostPort::parse(host).is_some() {
            let forwarded = [("x-forwarded-host", host)];
            assert_eq!(
                allowed(&origin_policy(), "127.0.0.1:8001", &forwarded),
                expected
            );
        }
    }
    let program = WebClient::of(None, None, &HeaderMap::new(), &TrustedProxies::default());
    assert!(origin_policy().check_host(None, &program).is_ok());
}

/// Checks a page under both rules: of requests without and with a session.
fn check(peer: &str, host: &str, extra: &[(&'static str, &str)]) -> (bool, bool) {
    let headers = headers(extra);
    let client = client(peer, host, &headers);
    let accepted = |method: Method, rule| {
        let checked = origin_policy().check_page(&method, &client, &headers, rule);
        checked.is_ok()
    };
    let all_accept = |rule| {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(accepted(method, rule));
        }
        let post = accepted(Method::POST, rule);
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(accepted(method, rule), post);
        }
        post
    };
    let strict = all_accept(PageRule::SameOrigin);
    assert_eq!(all_accept(PageRule::SignIn), strict);
    (all_accept(PageRule::SameMachine), strict)
}

#[test]
fn request_with_two_origins_is_refused() {
    let mut headers = HeaderMap::new();
    headers.append("origin", "http://box.lan:8001".parse().unwrap());
    headers.append("origin", "http://evil.test".parse().unwrap());
    let client = client("127.0.0.1", "box.lan:8001", &headers);
    for rule in [
        PageRule::SameMachine,
        PageRule::SameOrigin,
        PageRule::SignIn,
    ] {
        let checked = origin_policy().check_page(&Method::POST, &client, &headers, rule);
        assert!(checked.is_err());
    }
}

#[test]
fn cross_site_pages_cannot_change_anything() {
    for (extra, expected) in [
        (&[][..], (true, true)),
        (&[("origin", "http://localhost:3000")], (true, false)),
        (&[("origin", "http://127.0.0.1:2026")], (true, false)),
        (&[("origin", "https://[::1]:2026")], (true, false)),
        (&[("origin", "http://box.lan:8001")], (true, true)),
        (&[("origin", "HTTPS://BOX.LAN.:8001")], (true, true)),
        (
            &[
                ("origin", "https://ui.test"),
                ("sec-fetch-site", "cross-site"),
            ],
            (true, true),
        ),
        (&[("sec-fetch-site", "same-origin")], (true, true)),
        (&[("sec-fetch-site", "none")], (true, true)),
        (&[("sec-fetch-site", "same-site")], (true, false)),
        (&[("sec-fetch-site", "cross-site")], (false, false)),
        (&[("origin", "null")], (false, false)),
        (&[("origin", "")], (false, false)),
        (&[("origin", "https://evil.test")], (false, false)),
        (&[("origin", "http://evil-box.lan:8001")], (false, false)),
        (
            &[("origin", "http://box.lan.evil.test:8001")],
            (false, false),
        ),
        (&[("origin", "http://box.lan:8001/")], (false, false)),
        (&[("origin", "http://box.lan")], (false, false)),
        (&[("origin", "http://box.lan:3000")], (false, false)),
        (&[("origin", "http://ui.test")], (false, false)),
        (&[("origin", "https://ui.test.evil.test")], (false, false)),
        (&[("origin", "http://localhost.evil.test")], (false, false)),
        (&[("origin", "http://localhost@evil.test")], (false, false)),
        (&[("origin", "ftp://localhost")], (false, false)),
        (&[("origin", "chrome-extension://abcdef")], (false, false)),
    ] {
        let found = check("127.0.0.1", "box.lan:8001", extra);
        assert_eq!(found, expected, "{extra:?}");
    }
}

#[test]
fn page_signs_in_through_usual_proxies_without_setting() {
    let loopback = "127.0.0.1";
    for (what, peer, host, extra) in [
        (
            "port forward",
            loopback,
            "localhost:9000",
            &[("origin", "http://localhost:9000")][..],
        ),
        (
            "LAN name",
            "192.168.1.7",
            "deer.lan:8001",
            &[("origin", "http://deer.lan:8001")],
        ),
        (
            "rewrites of Next",
            loopback,
            "127.0.0.1:8001",
            &[
                ("origin", "http://192.168.1.5:3000"),
                ("x-forwarded-host", "192.168.1.5:3000"),
            ],
        ),
        (
            "nginx",
            "172.18.0.4",
            "localhost:2026",
            &[
                ("origin", "http://localhost:2026"),
                ("x-real-ip", "172.18.0.1"),
            ],
        ),
        (
            "nginx that removes the port",
            "172.18.0.4",
            "box.lan",
            &[
                ("origin", "http://box.lan:2026"),
                ("x-forwarded-for", "172.18.0.1"),
            ],
        ),
        (
            "nginx behind a TLS proxy",
            "172.18.0.4",
            "deer.example.com",
            &[
                ("origin", "https://deer.example.com"),
                ("x-forwarded-proto", "http"),
            ],
        ),
        (
            "nginx behind a TLS proxy that replaces the host",
            loopback,
            "nginx",
            &[
                ("origin", "https://deer.example.com"),
                ("x-forwarded-host", "deer.example.com"),
            ],
        ),
    ] {
        assert_eq!(check(peer, host, extra), (true, true), "{what}");
    }
    for (peer, host, extra) in [
        (
            "172.18.0.4",
            "127.0.0.1:8001",
            &[
                ("origin", "http://evil.test"),
                ("x-forwarded-host", "evil.test"),
            ][..],
        ),
        (loopback, "box.lan", &[("origin", "http://box.lan:2026")]),
        (
            loopback,
            "box.lan",
            &[
                ("origin", "http://evil-box.lan:2026"),
                ("x-real-ip", "172.18.0.1"),
            ],
        ),
    ] {
        assert_eq!(check(peer, host, extra), (false, false), "{extra:?}");
    }
}

#[test]
fn refusal_names_origin_expected_host_and_setting() {
    let text = |peer: &str, extra: &[(&'static str, &str)]| {
        let headers = headers(extra);
        let client = client(peer, "127.0.0.1:8001", &headers);
        let refused =
            origin_policy().check_page(&Method::POST, &client, &headers, PageRule::SignIn);
        refused.unwrap_err().to_string()
    };
    let plain = text("127.0.0.1", &[("origin", "http://deer.lan:3000")]);
    let proxied = text(
        "172.18.0.4",
        &[
            ("origin", "http://deer.lan:3000"),
            ("x-forwarded-host", "deer.lan:3000"),
        ],
    );
    for (text, setting) in [
        (&plain, "GATEWAY_CORS_ORIGINS"),
        (&proxied, "AUTH_TRUSTED_PROXIES"),
    ] {
        assert!(text.starts_with("Cross-site auth request denied"), "{text}");
        for part in ["http://deer.lan:3000", "127.0.0.1:8001", setting] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert!(proxied.contains("172.18.0.4"), "{proxied}");
}
