//! Tests of parsed and forwarded request heads.

use super::*;

fn request(text: &str) -> ProxyRequest {
    read(text.as_bytes()).unwrap().unwrap()
}

fn forwarded_head(text: &str) -> String {
    String::from_utf8(request(text).forwarded_head.unwrap()).unwrap()
}

#[test]
fn connect_is_parsed_to_its_target() {
    let text = "CONNECT pypi.org:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\nhello";
    assert_eq!(
        request(text),
        ProxyRequest {
            authority: "pypi.org:443".to_owned(),
            forwarded_head: None,
            length: text.len() - 5
        }
    );
    assert_eq!(read(b"CONNECT pypi.org:443 HTTP/1.1\r\nHost"), Ok(None));
}

#[test]
fn forwarded_head_has_parsed_host_without_hop_headers() {
    let head = "GET http://a.example/x?y#z HTTP/1.1\r\nHost: b.example\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\n\
                    Proxy-Authorization: Basic x\r\nAccept: */*\r\n\r\n";
    assert_eq!(
        forwarded_head(head),
        "GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    );
    assert_eq!(
        forwarded_head("GET HTTP://a.example:81 HTTP/1.0\r\n\r\n"),
        "GET / HTTP/1.0\r\nHost: a.example:81\r\nConnection: close\r\n\r\n"
    );
    assert!(
        forwarded_head("GET http://a.example?q HTTP/1.1\r\n\r\n")
            .starts_with("GET /?q HTTP/1.1\r\n")
    );
    let body = "POST http://a.example/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 4\r\n\r\nbody";
    assert!(forwarded_head(body).ends_with("Content-Length: 4\r\n\r\n"));
    assert_eq!(request(body).length, body.len() - 4);
}

#[test]
fn ambiguous_and_invalid_heads_are_rejected() {
    for (text, expected) in [
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
        assert_eq!(read(text.as_bytes()), Err(expected), "{text:?}");
    }
}
