//! Client of a request: what the connection and believed forwarded headers say about it.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, header};

use super::host_port::HostPort;
use super::trusted_proxies::TrustedProxies;

/// Remote address of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebClient {
    /// Address of the client: of the connection, or as a trusted proxy reports it. `None` if the
    /// request came over no connection.
    pub(crate) address: Option<IpAddr>,
    /// `true` if the client uses https.
    pub(crate) is_https: bool,
    /// Host of the request.
    pub(crate) host: Option<HostPort>,
    /// Host that a trusted proxy reports.
    pub(crate) forwarded_host: Option<HostPort>,
    /// `true` if no header says that a proxy passed the request on.
    pub(crate) is_direct: bool,
    /// `true` if the host has no port and the request came through a nearby proxy, which may have
    /// removed the port.
    pub(crate) port_may_be_lost: bool,
    /// Host that an untrusted peer reports, for error texts.
    pub(crate) unbelieved_host: Option<HostPort>,
    /// Address of the connection.
    pub(crate) peer: Option<IpAddr>,
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

impl WebClient {
    /// Reads the client of a request. The scheme is believed from loopback, private and trusted
    /// peers, because it only makes cookies stricter; host and client address only from `trusted`.
    pub(crate) fn of(
        peer: Option<Peer>,
        host: Option<&str>,
        headers: &HeaderMap,
        trusted: &TrustedProxies,
    ) -> Self {
        let peer = peer.map(|Peer(address)| address.to_canonical());
        let is_trusted = peer.is_some_and(|peer| trusted.contains(peer));
        let is_near = is_trusted || peer.is_some_and(is_private);
        let forwarded = first_forwarded(headers);
        let host = host.and_then(HostPort::parse);
        let reported_host = reported_host(headers, &forwarded, host.as_ref());
        let is_proxied = headers.contains_key(header::FORWARDED)
            || [
                FORWARDED_PROTO,
                FORWARDED_HOST,
                FORWARDED_PORT,
                FORWARDED_FOR,
                REAL_IP,
            ]
            .iter()
            .any(|name| headers.contains_key(name));
        let address = is_trusted
            .then(|| text(headers, &REAL_IP)?.trim().parse().ok())
            .flatten()
            .map(|address: IpAddr| address.to_canonical());
        Self {
            address: address.or(peer),
            is_direct: !is_proxied,
            is_https: is_near && reported_https(headers, &forwarded),
            port_may_be_lost: is_near
                && is_proxied
                && host.as_ref().is_some_and(|host| host.port.is_none()),
            host,
            forwarded_host: reported_host.clone().filter(|_| is_trusted),
            unbelieved_host: reported_host.filter(|_| !is_trusted),
            peer,
        }
    }

    /// `true` if the client is certainly on the machine of the server. A proxy without the address of
    /// its client may serve other machines, whose hosts a client can invent.
    pub(crate) fn is_local(&self) -> bool {
        self.is_direct && self.peer.is_some_and(|peer| peer.is_loopback()) && self.is_loopback()
    }

    /// `true` if the browser is on the machine of the server, as far as the hosts say.
    pub(crate) fn is_loopback(&self) -> bool {
        let is_loopback = |host: &HostPort| host.is_loopback();
        self.host.as_ref().is_some_and(is_loopback)
            && self.forwarded_host.as_ref().is_none_or(is_loopback)
            && self.unbelieved_host.as_ref().is_none_or(is_loopback)
    }
}

/// `true` for addresses that only machines of the same network have.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the first of the comma-separated values of a header.
fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = text(headers, name)?.split(',').next()?.trim();
    (!value.is_empty()).then_some(value)
}

fn reported_https(headers: &HeaderMap, forwarded: &[(String, String)]) -> bool {
    let proto = parameter(forwarded, "proto").or_else(|| first(headers, &FORWARDED_PROTO));
    proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
}

fn reported_host(
    headers: &HeaderMap,
    forwarded: &[(String, String)],
    own: Option<&HostPort>,
) -> Option<HostPort> {
    let port = first(headers, &FORWARDED_PORT).and_then(|port| port.parse().ok());
    let reported = parameter(forwarded, "host").or_else(|| first(headers, &FORWARDED_HOST));
    match reported {
        Some(reported) => Some(HostPort::parse(reported)?.or_port(port)),
        None => port.and_then(|port| Some(own?.clone().or_port(Some(port)))),
    }
}

fn parameter<'a>(forwarded: &'a [(String, String)], name: &str) -> Option<&'a str> {
    forwarded
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// Returns the parameters of the first element of `Forwarded` (RFC 7239), with names in lower case.
fn first_forwarded(headers: &HeaderMap) -> Vec<(String, String)> {
    let Some(value) = text(headers, &header::FORWARDED) else {
        return Vec::new();
    };
    let mut parameters = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    let mut current = String::new();
    for character in value.chars() {
        match character {
            _ if escaped => {
                escaped = false;
                current.push(character);
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => parameters.push(std::mem::take(&mut current)),
            ',' if !quoted => break,
            _ => current.push(character),
        }
    }
    parameters.push(current);
    parameters
        .iter()
        .filter_map(|parameter| parameter.split_once('='))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
#[path = "web_client_tests.rs"]
mod tests;
