//! Parser for the head of a proxy request: its target and the head to forward. Pure.

use httparse::{EMPTY_HEADER, Header, Request, Status};

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// Hop-by-hop headers, which are not forwarded.
const HOP_BY_HOP_HEADERS: &[&str] = &[
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// A parsed proxy request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    /// Host and port as sent.
    pub(super) authority: String,
    /// Head to forward instead of the received one; `None` for `CONNECT`.
    pub(super) forwarded_head: Option<Vec<u8>>,
    /// Length of the received head in bytes.
    pub(super) length: usize,
}

/// Reason why a head is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHead {
    #[error("not an HTTP request")]
    NoRequest,
    #[error("this is a proxy: it accepts CONNECT, and http addresses with a host")]
    NoProxyRequest,
    #[error("the length of the request body is ambiguous")]
    TwoLengths,
}

/// Parses the head at the beginning of `bytes`; `None` if it is incomplete.
pub(super) fn read(bytes: &[u8]) -> Result<Option<ProxyRequest>, BadHead> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    let Status::Complete(length) = request.parse(bytes).map_err(|_| BadHead::NoRequest)? else {
        return Ok(None);
    };
    let (Some(method), Some(address), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(BadHead::NoRequest);
    };
    if method == "CONNECT" {
        return Ok(Some(ProxyRequest {
            authority: address.to_owned(),
            forwarded_head: None,
            length,
        }));
    }
    let (scheme, rest) = address
        .split_at_checked("http://".len())
        .ok_or(BadHead::NoProxyRequest)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err(BadHead::NoProxyRequest);
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !has_single_length(request.headers) {
        return Err(BadHead::TwoLengths);
    }
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    // One request per connection: the next one may be for another host.
    let mut head = format!(
        "{method} {slash}{path} HTTP/1.{version}\r\nHost: {authority}\r\nConnection: close\r\n"
    )
    .into_bytes();
    let dropped = listed_in_connection(request.headers);
    let is_dropped = |name: &str| {
        HOP_BY_HOP_HEADERS.contains(&name) || dropped.iter().any(|dropped| dropped == name)
    };
    for Header { name, value } in request
        .headers
        .iter()
        .filter(|header| !is_dropped(&header.name.to_ascii_lowercase()))
    {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(Some(ProxyRequest {
        authority: authority.to_owned(),
        forwarded_head: Some(head),
        length,
    }))
}

/// Reports whether a request states the length of its body at most once.
fn has_single_length(headers: &[Header<'_>]) -> bool {
    let states_length = |header: &&Header<'_>| {
        ["content-length", "transfer-encoding"]
            .iter()
            .any(|name| header.name.eq_ignore_ascii_case(name))
    };
    headers.iter().filter(states_length).count() <= 1
}

fn listed_in_connection(headers: &[Header<'_>]) -> Vec<String> {
    let connection = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("connection"));
    let values = connection.flat_map(|header| {
        String::from_utf8_lossy(header.value)
            .to_ascii_lowercase()
            .split(',')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    // A client may not remove the length of the body.
    values
        .map(|name| name.trim().to_owned())
        .filter(|name| name != "content-length" && name != "transfer-encoding")
        .collect()
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
