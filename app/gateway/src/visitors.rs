//! Which browsers may speak to a server that signs nobody in: any page may make one send requests, not every page may be heard.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, header};

use crate::error::ApiError;

/// The `Host` names under which the server answers. A page whose own name was pointed at this machine is told by it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hosts {
    /// All: something in front of the server decides.
    Any,
    /// This machine's own names, and these; `*` stands for all.
    LoopbackAnd(Vec<String>),
}

/// The rules for visitors.
#[derive(Debug, Clone)]
pub struct Visitors(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    hosts: Hosts,
    origins: Vec<String>,
}

impl Visitors {
    /// Visitors of `hosts`; pages of `origins` may call from elsewhere.
    pub fn new(hosts: Hosts, origins: Vec<String>) -> Self {
        Self(Arc::new(Rules { hosts, origins }))
    }

    /// Whether pages of other origins may read answers at all.
    pub(crate) fn has_origins(&self) -> bool {
        !self.0.origins.is_empty()
    }

    /// Whether pages of this origin may read answers.
    pub(crate) fn knows_origin(&self, origin: &str) -> bool {
        self.0
            .origins
            .iter()
            .any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Refuses a request that a foreign page made a browser send. `host` is what [`requested_host`] found.
    ///
    /// [`requested_host`]: crate::host::requested_host
    pub(crate) fn admit(
        &self,
        method: &Method,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        // Browsers always name the host. Who does not is no browser.
        if let Some(host) = host.filter(|host| !self.knows_host(host)) {
            let known = "localhost, a loopback address, or a name in GATEWAY_ALLOWED_HOSTS";
            return Err(ApiError::Forbidden(format!(
                "Host {host:?} is not allowed: use {known}"
            )));
        }
        if method.is_safe() || self.is_ours(host, headers) {
            return Ok(());
        }
        Err(ApiError::Forbidden("Cross-site request denied.".to_owned()))
    }

    fn knows_host(&self, host: &str) -> bool {
        let Hosts::LoopbackAnd(allowed) = &self.0.hosts else {
            return true;
        };
        let Some(name) = name_of(host) else {
            return false;
        };
        is_loopback(&name)
            || allowed
                .iter()
                .any(|allowed| allowed == "*" || bare(allowed) == name)
    }

    /// Whether a request that changes something comes from a page of ours, or from no page.
    fn is_ours(&self, host: Option<&str>, headers: &HeaderMap) -> bool {
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
            return self.knows_origin(origin);
        };
        let own = host.is_some_and(|host| host.eq_ignore_ascii_case(of));
        own || self.knows_origin(origin) || name_of(of).is_some_and(|name| is_loopback(&name))
    }
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name in `name:port`, nothing where it is neither.
fn name_of(host: &str) -> Option<String> {
    let authority = host
        .parse::<Authority>()
        .ok()
        .filter(|authority| !authority.as_str().contains('@'))?;
    Some(bare(authority.host()))
}

/// A name in the form in which names are compared: addresses without brackets, names without the root's dot.
pub(crate) fn bare(name: &str) -> String {
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
#[path = "visitors_tests.rs"]
mod tests;
