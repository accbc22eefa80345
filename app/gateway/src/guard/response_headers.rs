//! Headers that restrict what browsers do with responses.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use super::paths::{is_artifact, is_sign_in_group};

const FRAME_ANCESTORS: &str = "frame-ancestors";

/// Adds the headers that every response has, and those of the path.
pub(crate) fn add(path: &str, response: &mut Response) {
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "same-origin");
    if is_sign_in_group(path) {
        set(header::CACHE_CONTROL, "no-store");
    }
    let ancestors = if is_artifact(path) {
        "'self'"
    } else {
        "'none'"
    };
    let policy = match headers
        .get(header::CONTENT_SECURITY_POLICY)
        .map(HeaderValue::to_str)
    {
        Some(Ok(policy)) if policy.contains(FRAME_ANCESTORS) => return,
        Some(Ok(policy)) => format!("{policy}; {FRAME_ANCESTORS} {ancestors}"),
        _ => format!("{FRAME_ANCESTORS} {ancestors}"),
    };
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn frames_are_permitted_for_artifacts_only() {
        let policy = |path: &str, given: Option<&'static str>| {
            let mut response = ().into_response();
            if let Some(given) = given {
                let given = HeaderValue::from_static(given);
                response
                    .headers_mut()
                    .insert(header::CONTENT_SECURITY_POLICY, given);
            }
            add(path, &mut response);
            assert_eq!(
                response.headers()[header::X_CONTENT_TYPE_OPTIONS],
                "nosniff"
            );
            assert_eq!(response.headers()[header::REFERRER_POLICY], "same-origin");
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str();
            policy.unwrap().to_owned()
        };
        assert_eq!(policy("/api/models", None), "frame-ancestors 'none'");
        assert_eq!(
            policy("/docs", Some("default-src 'self'")),
            "default-src 'self'; frame-ancestors 'none'"
        );
        assert_eq!(
            policy("/api/threads/x/artifacts/a.pdf", Some("sandbox")),
            "sandbox; frame-ancestors 'self'"
        );
        let own = "frame-ancestors https://ui.test";
        assert_eq!(policy("/docs", Some(own)), own);
    }

    #[test]
    fn answers_of_sign_in_are_not_stored() {
        let stored = |path: &str| {
            let mut response = [(header::CACHE_CONTROL, "max-age=9")].into_response();
            add(path, &mut response);
            response.headers()[header::CACHE_CONTROL] != "no-store"
        };
        assert!(!stored("/api/v1/auth/me"));
        assert!(!stored("/api/langgraph/v1/auth/login/local"));
        assert!(stored("/api/models"));
    }
}
