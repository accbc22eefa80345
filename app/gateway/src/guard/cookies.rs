//! Cookies of sign-in: their names, attributes and lifetimes.

use axum::http::{HeaderMap, HeaderValue, header};

use super::web_client::WebClient;

/// Token of the session.
pub(crate) const SESSION: &str = "access_token";
/// `1` if the person wants to stay signed in when the browser closes, else `0`.
pub(crate) const PERSISTENT: &str = "deerflow_session_persistent";
/// Token that pages repeat in a header.
pub(crate) const CSRF: &str = "csrf_token";

/// Lifetime of persistent cookies, in seconds: 7 days.
pub(crate) const LIFETIME_SECONDS: u64 = 604_800;

/// Returns the first value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    all(headers, name).next()
}

/// Returns all values of a cookie: a page of a sibling domain may have set another one of the same
/// name.
pub(crate) fn all<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.split_once('='))
        .filter(move |(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().trim_matches('"'))
}

/// `SameSite` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SameSite {
    /// Also sent when a page of another site links here.
    Lax,
    /// Sent by pages of this site only.
    Strict,
}

/// Cookie to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetCookie<'a> {
    /// Name.
    pub(crate) name: &'a str,
    /// Value, of characters that need no quotes.
    pub(crate) value: &'a str,
    /// Path.
    pub(crate) path: &'a str,
    /// `true` if scripts cannot read it.
    pub(crate) http_only: bool,
    /// `true` if it is sent over https only.
    pub(crate) secure: bool,
    /// Requests that carry it.
    pub(crate) same_site: SameSite,
    /// Lifetime in seconds; `None` until the browser closes, 0 deletes the cookie.
    pub(crate) max_age: Option<u64>,
}

impl SetCookie<'_> {
    /// Returns the value of `Set-Cookie`; `None` if a part has characters that headers cannot have.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut text = format!("{}={}; Path={}", self.name, self.value, self.path);
        if let Some(seconds) = self.max_age {
            text.push_str(&format!("; Max-Age={seconds}"));
        }
        text.push_str(match self.same_site {
            SameSite::Lax => "; SameSite=lax",
            SameSite::Strict => "; SameSite=strict",
        });
        if self.http_only {
            text.push_str("; HttpOnly");
        }
        if self.secure {
            text.push_str("; Secure");
        }
        text.parse().ok()
    }
}

/// Attributes that all cookies of one response share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CookieScope {
    secure: bool,
    /// `true` if cookies of this connection may outlive the browser.
    may_persist: bool,
}

impl CookieScope {
    /// Returns the attributes for a client. `insecure_persistence` permits persistent cookies over
    /// http.
    pub(crate) fn of(client: &WebClient, insecure_persistence: bool) -> Self {
        Self {
            secure: client.is_https,
            may_persist: client.is_https || client.is_loopback() || insecure_persistence,
        }
    }

    /// Returns the three cookies of a session.
    pub(crate) fn sign_in(self, token: &str, csrf: &str, persistent: bool) -> Vec<HeaderValue> {
        let max_age = (persistent && self.may_persist).then_some(LIFETIME_SECONDS);
        let wish = if persistent { "1" } else { "0" };
        self.three([token, wish, csrf], max_age)
    }

    /// Returns the deletions of the three cookies.
    pub(crate) fn sign_out(self) -> Vec<HeaderValue> {
        self.three([""; 3], Some(0))
    }

    fn three(self, [token, wish, csrf]: [&str; 3], max_age: Option<u64>) -> Vec<HeaderValue> {
        let cookie = |name, value, http_only, same_site| SetCookie {
            name,
            value,
            path: "/",
            http_only,
            secure: self.secure,
            same_site,
            max_age,
        };
        [
            cookie(SESSION, token, true, SameSite::Lax),
            cookie(PERSISTENT, wish, true, SameSite::Lax),
            cookie(CSRF, csrf, false, SameSite::Strict),
        ]
        .iter()
        .filter_map(SetCookie::header)
        .collect()
    }
}

#[cfg(test)]
mod tests {
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
}
