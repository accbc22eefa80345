//! Host and origin checks: which browser pages may call a server without sign-in. Any page can make
//! a browser send requests, so the server checks their origin.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, header};

use crate::error::ApiError;

/// Accepted `Host` names. The check stops DNS rebinding: a foreign page whose name resolves to this
/// machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hosts {
    /// All names: a proxy in front of the server checks them.
    Any,
    /// Loopback names and addresses, and these names; `*` accepts all.
    LoopbackAnd(Vec<String>),
}

/// Accepted hosts and origins. Clones share them.
#[derive(Debug, Clone)]
pub struct OriginPolicy(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    hosts: Hosts,
    origins: Vec<String>,
}

impl OriginPolicy {
    /// A policy that accepts `hosts`, and cross-origin calls from `origins`.
    pub fn new(hosts: Hosts, origins: Vec<String>) -> Self {
        Self(Arc::new(Rules { hosts, origins }))
    }

    /// `true` if any cross-origin page may read responses.
    pub(crate) fn has_origins(&self) -> bool {
        !self.0.origins.is_empty()
    }

    /// `true` if pages of this origin may read responses.
    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        self.0
            .origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// Rejects a request that an untrusted page made a browser send. `host` is the result of
    /// [`requested_host`].
    ///
    /// [`requested_host`]: crate::guard::host::requested_host
    pub(crate) fn check(
        &self,
        method: &Method,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        // Browsers always send a host. A client without one is not a browser.
        if let Some(host) = host.filter(|host| !self.allows_host(host)) {
            let allowed = "localhost, a loopback address, or a name in GATEWAY_ALLOWED_HOSTS";
            return Err(ApiError::Forbidden(format!(
                "Host {host:?} is not allowed: use {allowed}"
            )));
        }
        if method.is_safe() || self.is_same_site(host, headers) {
            return Ok(());
        }
        Err(ApiError::Forbidden("Cross-site request denied.".to_owned()))
    }

    fn allows_host(&self, host: &str) -> bool {
        let Hosts::LoopbackAnd(allowed) = &self.0.hosts else {
            return true;
        };
        let Some(name) = host_name(host) else {
            return false;
        };
        is_loopback(&name)
            || allowed
                .iter()
                .any(|allowed| allowed == "*" || normalized_name(allowed) == name)
    }

    /// `true` if an unsafe request was sent by a page of an accepted origin, or not by a page.
    fn is_same_site(&self, host: Option<&str>, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return headers
                .get(SEC_FETCH_SITE)
                .is_none_or(|site| site != "cross-site");
        };
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let Some(of) = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
        else {
            return self.allows_origin(origin);
        };
        let own = host.is_some_and(|host| host.eq_ignore_ascii_case(of));
        own || self.allows_origin(origin) || host_name(of).is_some_and(|name| is_loopback(&name))
    }
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns the name in `name:port`, or `None` if the text has another form.
fn host_name(host: &str) -> Option<String> {
    let authority = host
        .parse::<Authority>()
        .ok()
        .filter(|authority| !authority.as_str().contains('@'))?;
    Some(normalized_name(authority.host()))
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

fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
#[path = "origin_policy_tests.rs"]
mod tests;
