//! Rejects encoded request bodies: no code behind the request guard decodes them.

use axum::http::{HeaderMap, HeaderName, header};

use crate::error::ApiError;

/// Requires a body without content coding, and no transfer coding but `chunked`.
///
/// # Errors
/// [`ApiError::UnsupportedCoding`] names the coding.
pub(crate) fn require_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    require_only("identity", header::CONTENT_ENCODING, headers)?;
    require_only("chunked", header::TRANSFER_ENCODING, headers)
}

fn require_only(allowed: &str, name: HeaderName, headers: &HeaderMap) -> Result<(), ApiError> {
    let values = headers
        .get_all(&name)
        .iter()
        .map(|value| value.to_str().unwrap_or("?"));
    let mut codings = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|coding| !coding.is_empty());
    match codings.find(|coding| !coding.eq_ignore_ascii_case(allowed)) {
        None => Ok(()),
        Some(coding) => {
            let coding: String = coding.chars().take(40).collect();
            Err(ApiError::UnsupportedCoding(format!(
                "{name} {coding:?} is not supported: send the body without it"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identity_and_chunked_are_accepted() {
        for (name, value, accepted) in [
            ("content-encoding", "identity", true),
            ("content-encoding", "", true),
            ("content-encoding", "Identity, identity", true),
            ("content-encoding", "gzip", false),
            ("content-encoding", "identity, br", false),
            ("content-encoding", "x-unknown", false),
            ("transfer-encoding", "chunked", true),
            ("transfer-encoding", "gzip, chunked", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            assert_eq!(require_plain(&headers).is_ok(), accepted, "{name}: {value}");
        }
    }
}
