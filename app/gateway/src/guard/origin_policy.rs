//! Host and origin checks: which pages may call the server. Any page can make a browser send
//! requests, so the server checks their origin.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, Method, header};

use super::host_port::{HostPort, PageOrigin, normalized_name};
use super::web_client::WebClient;
use crate::error::{ApiError, truncated};

/// Accepted `Host` names. The check stops DNS rebinding: a foreign page whose name resolves to this
/// machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hosts {
    /// All names: the server is not on loopback, and a foreign name does not lead to it by accident.
    Any,
    /// Addresses, names that the public DNS does not have, and these names; `*` accepts all.
    LoopbackAnd(Vec<String>),
}

/// Pages that may send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageRule {
    /// Pages of the server and of this machine: the request acts without a session.
    SameMachine,
    /// Pages of the server only: the request acts by a session.
    SameOrigin,
    /// Pages of the server only: the request signs in.
    SignIn,
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

    /// Rejects a request that acts without a session if its host, or a host that a proxy reports,
    /// may belong to another party. `host` is the result of [`requested_host`].
    ///
    /// [`requested_host`]: crate::guard::host::requested_host
    pub(crate) fn check_host(
        &self,
        host: Option<&str>,
        client: &WebClient,
    ) -> Result<(), ApiError> {
        // Browsers always send a host. A client without one is not a browser.
        let own = host.map(|text| (text.to_owned(), client.host.as_ref()));
        let reported = [&client.forwarded_host, &client.unbelieved_host];
        let reported = reported
            .into_iter()
            .flatten()
            .map(|host| (host.to_string(), Some(host)));
        for (text, host) in own.into_iter().chain(reported) {
            if !self.allows_host(host) {
                let allowed = "localhost, an address, a name of the local network, or a name in GATEWAY_ALLOWED_HOSTS";
                let text = truncated(&text);
                return Err(ApiError::Forbidden(format!(
                    "Host {text:?} is not allowed: use {allowed}"
                )));
            }
        }
        Ok(())
    }

    fn allows_host(&self, host: Option<&HostPort>) -> bool {
        let Hosts::LoopbackAnd(allowed) = &self.0.hosts else {
            return true;
        };
        host.is_some_and(|host| {
            host.is_private()
                || allowed
                    .iter()
                    .any(|allowed| allowed == "*" || normalized_name(allowed) == host.name)
        })
    }

    /// Rejects a request that an untrusted page made a browser send.
    pub(crate) fn check_page(
        &self,
        method: &Method,
        client: &WebClient,
        headers: &HeaderMap,
        rule: PageRule,
    ) -> Result<(), ApiError> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let page = match (origins.next(), origins.next()) {
            _ if method.is_safe() => return Ok(()),
            (None, _) => return check_fetch_site(headers, rule),
            (Some(origin), None) => origin.to_str().unwrap_or("?"),
            (Some(_), Some(_)) => return Err(refused(rule, "it names more than one Origin")),
        };
        let origin = PageOrigin::parse(page).map(|origin| origin.host);
        let accepted = origin
            .as_ref()
            .is_some_and(|origin| is_own(client, origin, rule));
        if accepted || self.allows_origin(page) {
            return Ok(());
        }
        Err(refused(rule, &explanation(client, page, origin.as_ref())))
    }
}

/// Returns `true` if a request without `Host` policy may sign in: its page was loaded over https,
/// so a certificate proves that the host is not another party's.
pub(crate) fn is_from_secure_page(headers: &HeaderMap) -> bool {
    headers
        .get(header::ORIGIN)
        .and_then(|origin| PageOrigin::parse(origin.to_str().ok()?))
        .is_some_and(|origin| origin.is_https)
}

fn check_fetch_site(headers: &HeaderMap, rule: PageRule) -> Result<(), ApiError> {
    let site = headers.get(SEC_FETCH_SITE);
    let is_foreign =
        |site: &str| site == "cross-site" || (site == "same-site" && rule != PageRule::SameMachine);
    if site.is_some_and(|site| site.to_str().is_ok_and(is_foreign)) {
        return Err(refused(rule, "a page of another site sent it"));
    }
    Ok(())
}

/// `true` if pages of this origin belong to the server.
fn is_own(client: &WebClient, origin: &HostPort, rule: PageRule) -> bool {
    let hosts = [&client.host, &client.forwarded_host];
    let is_same =
        |host: &HostPort| host == origin || (client.port_may_be_lost && host.name == origin.name);
    hosts.into_iter().flatten().any(is_same)
        || (rule == PageRule::SameMachine && origin.is_loopback())
}

/// Returns what was compared, and the setting that accepts the page.
fn explanation(client: &WebClient, page: &str, origin: Option<&HostPort>) -> String {
    let page = truncated(page);
    let expected = client.forwarded_host.as_ref().or(client.host.as_ref());
    let expected = expected.map_or_else(|| "no host".to_owned(), HostPort::to_string);
    let help = match client
        .peer
        .filter(|_| origin.is_some() && origin == client.unbelieved_host.as_ref())
    {
        Some(peer) => format!("If the proxy at {peer} is yours, add it to AUTH_TRUSTED_PROXIES."),
        None => format!(
            "If the page is yours, let the proxy pass the Host header with its port, or add {page} to GATEWAY_CORS_ORIGINS."
        ),
    };
    format!("the page's origin is {page:?}, expected is {expected:?}. {help}")
}

fn refused(rule: PageRule, why: &str) -> ApiError {
    let what = match rule {
        PageRule::SignIn => "Cross-site auth request denied",
        PageRule::SameMachine | PageRule::SameOrigin => "Cross-site request denied",
    };
    ApiError::Forbidden(format!("{what}: {why}"))
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[cfg(test)]
#[path = "origin_policy_tests.rs"]
mod tests;
