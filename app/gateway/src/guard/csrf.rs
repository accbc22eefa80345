//! Double submit of the CSRF token: only a page of this host can read the cookie and repeat it in a
//! header.

use axum::http::{HeaderMap, HeaderName, Method};

use super::cookies;
use crate::error::ApiError;

const HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

/// Requires of an unsafe request that its header repeats the cookie, and that the token belongs to
/// the session, which `is_token_of_session` decides.
///
/// # Errors
/// [`ApiError::Forbidden`].
pub(crate) fn check(
    method: &Method,
    headers: &HeaderMap,
    is_token_of_session: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    let token = submitted(method, headers)?;
    match token {
        Some(token) if !is_token_of_session(token) => Err(mismatch()),
        _ => Ok(()),
    }
}

/// Returns the token of an unsafe request, after a comparison of header and cookie; `None` for a
/// safe request.
///
/// # Errors
/// [`ApiError::Forbidden`].
pub(crate) fn submitted<'a>(
    method: &Method,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ApiError> {
    if method.is_safe() {
        return Ok(None);
    }
    let header = headers.get(HEADER).and_then(|value| value.to_str().ok());
    let mut cookies = cookies::all(headers, cookies::CSRF).peekable();
    let (Some(header), true) = (
        header.filter(|header| !header.is_empty()),
        cookies.peek().is_some(),
    ) else {
        let text = "CSRF token missing. Include X-CSRF-Token header.";
        return Err(ApiError::Forbidden(text.to_owned()));
    };
    // The comparison needs no constant time: the signature of the token is checked as well, and
    // both texts come from the same client.
    if cookies.any(|cookie| cookie == header) {
        Ok(Some(header))
    } else {
        Err(mismatch())
    }
}

fn mismatch() -> ApiError {
    ApiError::Forbidden("CSRF token mismatch. Reload the page.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(method: Method, cookie: &str, header: Option<&str>) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert("cookie", cookie.parse().unwrap());
        if let Some(header) = header {
            headers.insert(HEADER, header.parse().unwrap());
        }
        check(&method, &headers, |token| token == "own").map_err(|error| error.to_string())
    }

    #[test]
    fn header_has_to_repeat_a_token_of_the_session() {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(
                answer(method.clone(), "csrf_token=own", Some("own")),
                Ok(())
            );
            let both = "csrf_token=planted; csrf_token=own";
            assert_eq!(answer(method.clone(), both, Some("own")), Ok(()));
            for (cookie, header, text) in [
                ("csrf_token=own", None, "CSRF token missing"),
                ("csrf_token=own", Some(""), "CSRF token missing"),
                ("a=own", Some("own"), "CSRF token missing"),
                ("csrf_token=own", Some("other"), "CSRF token mismatch"),
                ("csrf_token=other", Some("own"), "CSRF token mismatch"),
                ("csrf_token=other", Some("other"), "CSRF token mismatch"),
            ] {
                let refused = answer(method.clone(), cookie, header).unwrap_err();
                assert!(refused.starts_with(text), "{cookie} {header:?}: {refused}");
            }
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert_eq!(answer(method, "", None), Ok(()));
        }
    }
}
