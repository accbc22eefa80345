//! Requests of all kinds of pages and programs.

use super::*;

fn origin_policy() -> OriginPolicy {
    OriginPolicy::new(
        Hosts::LoopbackAnd(vec!["Box.lan".to_owned()]),
        vec!["https://ui.test".to_owned()],
    )
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect()
}

#[test]
fn only_loopback_and_allowed_hosts_are_accepted() {
    let named = |origin_policy: &OriginPolicy, host: &str| {
        origin_policy
            .check(&Method::GET, Some(host), &HeaderMap::new())
            .is_ok()
    };
    for (host, allowed) in [
        ("localhost", true),
        ("LOCALHOST:8001", true),
        ("localhost.:8001", true),
        ("127.0.0.1:8001", true),
        ("127.8.8.8", true),
        ("[::1]", true),
        ("[::1]:8001", true),
        ("[::ffff:127.0.0.1]:8001", true),
        ("box.lan:8001", true),
        ("evil.test", false),
        ("evil.test:8001", false),
        ("localhost.evil.test", false),
        ("127.0.0.1.evil.test", false),
        ("localhost@evil.test", false),
        ("evil.test@localhost", false),
        ("0.0.0.0:8001", false),
        ("192.168.1.5:8001", false),
        ("[::]:8001", false),
        ("", false),
        ("a b", false),
    ] {
        assert_eq!(named(&origin_policy(), host), allowed, "{host:?}");
        assert!(
            named(&OriginPolicy::new(Hosts::Any, vec![]), host),
            "{host:?}"
        );
        assert!(
            named(
                &OriginPolicy::new(Hosts::LoopbackAnd(vec!["*".to_owned()]), vec![]),
                host
            ) || host_name(host).is_none(),
            "{host:?}"
        );
    }
    assert!(
        origin_policy()
            .check(&Method::GET, None, &HeaderMap::new())
            .is_ok()
    );
}

#[test]
fn cross_site_pages_cannot_change_anything() {
    for (extra, allowed) in [
        (&[][..], true),
        (&[("origin", "http://localhost:3000")], true),
        (&[("origin", "http://127.0.0.1:2026")], true),
        (&[("origin", "https://[::1]:2026")], true),
        (&[("origin", "http://box.lan:8001")], true),
        (
            &[
                ("origin", "https://box.lan:8001"),
                ("sec-fetch-site", "same-origin"),
            ],
            true,
        ),
        (
            &[
                ("origin", "https://ui.test"),
                ("sec-fetch-site", "cross-site"),
            ],
            true,
        ),
        (&[("sec-fetch-site", "same-origin")], true),
        (&[("sec-fetch-site", "none")], true),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("origin", "null")], false),
        (&[("origin", "")], false),
        (&[("origin", "https://evil.test")], false),
        (&[("origin", "http://box.lan")], false),
        (&[("origin", "http://box.lan:3000")], false),
        (&[("origin", "http://ui.test")], false),
        (&[("origin", "https://ui.test.evil.test")], false),
        (&[("origin", "http://localhost.evil.test")], false),
        (&[("origin", "http://localhost@evil.test")], false),
        (&[("origin", "ftp://localhost")], false),
        (&[("origin", "chrome-extension://abcdef")], false),
    ] {
        let headers = headers(extra);
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(
                origin_policy()
                    .check(&method, Some("box.lan:8001"), &headers)
                    .is_ok(),
                allowed,
                "{method} {extra:?}"
            );
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(
                origin_policy()
                    .check(&method, Some("box.lan:8001"), &headers)
                    .is_ok(),
                "{method} {extra:?}"
            );
        }
    }
}
