//! Attributes of cookies by scheme, host and wish.

use super::*;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::guard::web_client::Peer;

fn client(host: &str, headers: &[(&'static str, &str)]) -> WebClient {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    let peer = Some(Peer("127.0.0.1".parse().unwrap()));
    WebClient::of(peer, Some(host), &headers, &TrustedProxies::default())
}

fn texts(cookies: Vec<HeaderValue>) -> Vec<String> {
    let text = |value: HeaderValue| value.to_str().unwrap().to_owned();
    cookies.into_iter().map(text).collect()
}

#[test]
fn attributes_depend_on_scheme_host_and_wish() {
    const HTTPS: &[(&str, &str)] = &[("x-forwarded-proto", "https")];
    for (host, headers, insecure, persistent, secure, lasts) in [
        ("deer.lan", HTTPS, false, true, true, true),
        ("deer.lan", HTTPS, false, false, true, false),
        ("localhost:2026", &[], false, true, false, true),
        ("ui.localhost", &[], false, true, false, true),
        ("[::1]:8001", &[], false, true, false, true),
        ("127.0.0.1", &[], false, false, false, false),
        ("deer.lan", &[], false, true, false, false),
        ("deer.lan", &[], true, true, false, true),
        (
            "deer.lan",
            &[("x-forwarded-host", "localhost")],
            false,
            true,
            false,
            false,
        ),
        (
            "127.0.0.1",
            &[("x-forwarded-host", "deer.lan")],
            false,
            true,
            false,
            false,
        ),
    ] {
        let scope = CookieScope::of(&client(host, headers), insecure);
        let set = texts(scope.sign_in("TOKEN", "CSRF", persistent));
        let life = if lasts { "; Max-Age=604800" } else { "" };
        let end = if secure { "; Secure" } else { "" };
        let wish = u8::from(persistent);
        assert_eq!(
            set,
            [
                format!("access_token=TOKEN; Path=/{life}; SameSite=lax; HttpOnly{end}"),
                format!(
                    "deerflow_session_persistent={wish}; Path=/{life}; SameSite=lax; HttpOnly{end}"
                ),
                format!("csrf_token=CSRF; Path=/{life}; SameSite=strict{end}"),
            ],
            "{host} {headers:?}"
        );
    }
}

#[test]
fn sign_out_deletes_three_cookies() {
    let scope = CookieScope::of(
        &client("deer.lan", &[("x-forwarded-proto", "https")]),
        false,
    );
    assert_eq!(
        texts(scope.sign_out()),
        [
            "access_token=; Path=/; Max-Age=0; SameSite=lax; HttpOnly; Secure",
            "deerflow_session_persistent=; Path=/; Max-Age=0; SameSite=lax; HttpOnly; Secure",
            "csrf_token=; Path=/; Max-Age=0; SameSite=strict; Secure",
        ]
    );
}

#[test]
fn cookies_are_read_from_all_headers() {
    let mut headers = HeaderMap::new();
    headers.append(
        header::COOKIE,
        "a=1; access_token=x; xaccess_token=z".parse().unwrap(),
    );
    headers.append(
        header::COOKIE,
        "csrf_token=\"q\";csrf_token=r=s; broken".parse().unwrap(),
    );
    assert_eq!(cookie(&headers, SESSION), Some("x"));
    assert_eq!(all(&headers, CSRF).collect::<Vec<_>>(), ["q", "r=s"]);
    assert_eq!(cookie(&headers, PERSISTENT), None);
    assert_eq!(cookie(&headers, "broken"), None);
}
