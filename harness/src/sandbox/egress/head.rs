//! The head of a request to the proxy: who is meant, and what is passed on of it. Pure.

use httparse::{EMPTY_HEADER, Header, Request, Status};

/// How many headers a request may have.
const MOST_HEADERS: usize = 100;
/// Headers between a client and a proxy, which go no further.
const FOR_THE_PROXY: &[&str] = &[
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

/// What a client asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The host with its port, as named.
    pub(super) named: String,
    /// What is passed on instead of the head; `None` for a connection that is only to be made.
    pub(super) passed_on: Option<Vec<u8>>,
    /// How many bytes the head has.
    pub(super) length: usize,
}

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHead {
    #[error("that is no HTTP request")]
    NoRequest,
    #[error("this is a proxy: it takes CONNECT, and http addresses with their host")]
    NoProxyRequest,
    #[error("the length of the request's body can be read in two ways")]
    TwoLengths,
}

/// Reads the head that `bytes` begin with; `None` where it is not whole.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Asked>, BadHead> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
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
        return Ok(Some(Asked {
            named: address.to_owned(),
            passed_on: None,
            length,
        }));
    }
    let (scheme, rest) = address
        .split_at_checked("http://".len())
        .ok_or(BadHead::NoProxyRequest)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err(BadHead::NoProxyRequest);
    }
    let (named, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !one_length(request.headers) {
        return Err(BadHead::TwoLengths);
    }
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    // One request for each connection: the next may be for another host.
    let mut head = format!(
        "{method} {slash}{path} HTTP/1.{version}\r\nHost: {named}\r\nConnection: close\r\n"
    )
    .into_bytes();
    let dropped = named_by_connection(request.headers);
    let is_dropped =
        |name: &str| FOR_THE_PROXY.contains(&name) || dropped.iter().any(|dropped| dropped == name);
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
    Ok(Some(Asked {
        named: named.to_owned(),
        passed_on: Some(head),
        length,
    }))
}

/// Whether a request says at most once, and in one way, how long its body is.
fn one_length(headers: &[Header<'_>]) -> bool {
    let said = |header: &&Header<'_>| {
        ["content-length", "transfer-encoding"]
            .iter()
            .any(|name| header.name.eq_ignore_ascii_case(name))
    };
    headers.iter().filter(said).count() <= 1
}

fn named_by_connection(headers: &[Header<'_>]) -> Vec<String> {
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
    // The length of the body is not the client's to take away.
    values
        .map(|name| name.trim().to_owned())
        .filter(|name| name != "content-length" && name != "transfer-encoding")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        read(text.as_bytes()).unwrap().unwrap()
    }

    fn passed_on(text: &str) -> String {
        String::from_utf8(asked(text).passed_on.unwrap()).unwrap()
    }

    #[test]
    fn a_connection_is_asked_for_by_its_host_alone() {
        let text = "CONNECT pypi.org:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\nhello";
        assert_eq!(
            asked(text),
            Asked {
                named: "pypi.org:443".to_owned(),
                passed_on: None,
                length: text.len() - 5
            }
        );
        assert_eq!(read(b"CONNECT pypi.org:443 HTTP/1.1\r\nHost"), Ok(None));
    }

    #[test]
    fn a_request_is_passed_on_for_the_host_that_was_read_and_without_what_was_meant_for_the_proxy()
    {
        let head = "GET http://a.example/x?y#z HTTP/1.1\r\nHost: b.example\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\n\
                    Proxy-Authorization: Basic x\r\nAccept: */*\r\n\r\n";
        assert_eq!(
            passed_on(head),
            "GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        assert_eq!(
            passed_on("GET HTTP://a.example:81 HTTP/1.0\r\n\r\n"),
            "GET / HTTP/1.0\r\nHost: a.example:81\r\nConnection: close\r\n\r\n"
        );
        assert!(
            passed_on("GET http://a.example?q HTTP/1.1\r\n\r\n")
                .starts_with("GET /?q HTTP/1.1\r\n")
        );
        let body = "POST http://a.example/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 4\r\n\r\nbody";
        assert!(passed_on(body).ends_with("Content-Length: 4\r\n\r\n"));
        assert_eq!(asked(body).length, body.len() - 4);
    }

    #[test]
    fn what_can_be_read_in_two_ways_or_not_at_all_is_refused() {
        for (text, wanted) in [
            (
                "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
                BadHead::NoProxyRequest,
            ),
            (
                "GET https://a.example/ HTTP/1.1\r\n\r\n",
                BadHead::NoProxyRequest,
            ),
            (
                "GET ftp://a.example/ HTTP/1.1\r\n\r\n",
                BadHead::NoProxyRequest,
            ),
            (
                "GET http:/a.example/ HTTP/1.1\r\n\r\n",
                BadHead::NoProxyRequest,
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                BadHead::TwoLengths,
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                BadHead::TwoLengths,
            ),
            (
                "CONNECT a.example\0:443 HTTP/1.1\r\n\r\n",
                BadHead::NoRequest,
            ),
            ("CONNECT a.example:443 HTTP/2.0\r\n\r\n", BadHead::NoRequest),
            (
                "GET http://a.example/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
                BadHead::NoRequest,
            ),
            (
                "GET http://a.example/ HTTP/1.1\r\nA : b\r\n\r\n",
                BadHead::NoRequest,
            ),
            ("\u{5}\u{1}\0", BadHead::NoRequest),
            ("\u{16}\u{3}\u{1}", BadHead::NoRequest),
        ] {
            assert_eq!(read(text.as_bytes()), Err(wanted), "{text:?}");
        }
    }
}
