//! Host of a request, from its target and its `Host` header (RFC 9112, section 3.2).

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, Version, header};

use crate::error::ApiError;
use crate::guard::host_port::normalized_name;

/// Returns the host, with the port if the request names one; `None` for an HTTP/1.0 request without
/// a host.
///
/// The authority of an absolute target takes precedence over `Host`, which must name the same host:
/// a proxy in front of the server may use either.
///
/// # Errors
/// [`ApiError::BadRequest`] for an HTTP/1.1 request without `Host`, for more than one `Host`, for
/// an invalid one, and for a target with a different host.
pub(crate) fn requested_host<'a>(
    version: Version,
    uri: &'a Uri,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ApiError> {
    let mut named = headers.get_all(header::HOST).iter();
    let host = named.next().map(|value| {
        value
            .to_str()
            .ok()
            .filter(|host| is_host(host))
            .ok_or_else(|| refused("the Host header is not a valid host"))
    });
    let host = host.transpose()?;
    if named.next().is_some() {
        return Err(refused("the request names more than one Host"));
    }
    if version == Version::HTTP_11 && host.is_none() {
        return Err(refused("an HTTP/1.1 request needs a Host header"));
    }
    let Some(target) = uri.authority() else {
        return Ok(host);
    };
    let port = match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        None => None,
        Some(_) => {
            return Err(refused(
                "the scheme of the request target is not http or https",
            ));
        }
    };
    if !is_host(target.as_str()) {
        return Err(refused("the request target names no host"));
    }
    match host {
        Some(host) if !is_same(host, target, port) => Err(refused(
            "the request target and the Host header name different hosts",
        )),
        _ => Ok(Some(target.as_str())),
    }
}

fn refused(why: &str) -> ApiError {
    ApiError::BadRequest(why.to_owned())
}

/// `true` if the text is `host` or `host:port`, or empty as for a target without authority.
fn is_host(text: &str) -> bool {
    let is_authority = |authority: Authority| {
        let port = authority
            .as_str()
            .rsplit_once(':')
            .map(|(_, port)| port)
            .filter(|port| !port.ends_with(']'));
        !authority.as_str().contains('@')
            && port.is_none_or(|port| port.is_empty() || port.parse::<u16>().is_ok())
    };
    text.is_empty() || text.parse().is_ok_and(is_authority)
}

/// `true` if `host` and `target` name the same host and port; `default` is the port if one is
/// missing.
fn is_same(host: &str, target: &Authority, default: Option<u16>) -> bool {
    let port = |authority: &Authority| authority.port_u16().or(default);
    host.parse::<Authority>().is_ok_and(|host| {
        normalized_name(host.host()) == normalized_name(target.host())
            && port(&host) == port(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(version: Version, target: &str, hosts: &[&str]) -> Result<Option<String>, u16> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().expect("a header"));
        }
        let uri: Uri = target.parse().expect("a target");
        match requested_host(version, &uri, &headers) {
            Ok(host) => Ok(host.map(str::to_owned)),
            Err(error) => Err(error.status(crate::dialect::Dialect::Platform).as_u16()),
        }
    }

    #[test]
    fn http_1_1_needs_exactly_one_valid_host() {
        assert_eq!(
            host(Version::HTTP_11, "/ok", &["localhost:8001"]),
            Ok(Some("localhost:8001".to_owned()))
        );
        assert_eq!(
            host(Version::HTTP_11, "/ok", &[""]),
            Ok(Some(String::new()))
        );
        assert_eq!(host(Version::HTTP_10, "/ok", &[]), Ok(None));
        assert_eq!(host(Version::HTTP_11, "/ok", &[]), Err(400));
        assert_eq!(host(Version::HTTP_11, "http://localhost/ok", &[]), Err(400));
        assert_eq!(host(Version::HTTP_10, "/ok", &["a", "a"]), Err(400));
        for bad in ["a b", "a@b", "a/b", "a:b", "a:99999", "http://a", "a,b c"] {
            assert_eq!(host(Version::HTTP_11, "/ok", &[bad]), Err(400), "{bad}");
        }
    }

    #[test]
    fn an_absolute_target_must_name_the_same_host() {
        for (target, named) in [
            ("http://localhost:8001/ok", "localhost:8001"),
            ("http://LOCALHOST/ok", "localhost:80"),
            ("https://a.test/ok", "A.test.:443"),
            ("http://[::1]:8001/ok", "[::1]:8001"),
        ] {
            let authority = target
                .parse::<Uri>()
                .expect("a target")
                .authority()
                .map(|authority| authority.as_str().to_owned());
            assert_eq!(
                host(Version::HTTP_11, target, &[named]),
                Ok(authority),
                "{target} {named}"
            );
        }
        for (target, named) in [
            ("http://evil.test/ok", "localhost"),
            ("http://localhost/ok", "evil.test"),
            ("http://localhost:8002/ok", "localhost:8001"),
            ("http://a@localhost/ok", "localhost"),
            ("ftp://localhost/ok", "localhost"),
            ("http://localhost/ok", ""),
        ] {
            assert_eq!(
                host(Version::HTTP_11, target, &[named]),
                Err(400),
                "{target} {named}"
            );
        }
        assert_eq!(
            host(Version::HTTP_10, "http://evil.test/ok", &[]),
            Ok(Some("evil.test".to_owned()))
        );
    }
}
