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
#[path = "cookies_tests.rs"]
mod tests;
