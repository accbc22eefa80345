//! Tests of the meaning of answers.

use http::HeaderValue;

use super::*;

fn limit(status: u16, retry_after: Option<&'static str>, body: &str) -> Option<u64> {
    let headers: HeaderMap = retry_after
        .map(|value| (http::header::RETRY_AFTER, HeaderValue::from_static(value)))
        .into_iter()
        .collect();
    match outcome(status, &headers, body.as_bytes()) {
        Err(ApiError::Failed(PlatformError::RateLimited { retry_after, .. })) => {
            Some(retry_after.as_secs())
        }
        _ => None,
    }
}

#[test]
fn limits_are_recognized_by_status_code_and_words() {
    let too_fast = r#"{"code":"x","message":"send too fast, exceed 20 times per minute"}"#;
    let cases = [
        (limit(429, None, "{}"), Some(5)),
        (limit(429, Some("33"), "{}"), Some(33)),
        (limit(429, Some("99999999"), "<html>"), Some(86_400)),
        (limit(400, None, too_fast), Some(60)),
        (
            limit(
                403,
                None,
                r#"{"code":"Forbidden.AccessDenied.QpsLimitForApi"}"#,
            ),
            Some(5),
        ),
        (limit(200, None, r#"{"errcode":130101}"#), Some(60)),
        (limit(400, None, r#"{"code":"invalid"}"#), None),
        (limit(503, None, ""), None),
    ];
    for (number, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found, expected, "case {number}");
    }
}

#[test]
fn answers_become_results_and_words() {
    let none = HeaderMap::new();
    assert_eq!(
        outcome(200, &none, b"{\"errcode\":0}").unwrap()["errcode"],
        0
    );
    assert_eq!(outcome(200, &none, b"").unwrap(), Value::Null);
    assert_eq!(outcome(401, &none, b"{}"), Err(ApiError::TokenExpired));
    assert_eq!(
        outcome(200, &none, b"{\"errcode\":40014}"),
        Err(ApiError::TokenExpired)
    );
    assert!(matches!(
        outcome(500, &none, b"<html>"),
        Err(ApiError::Failed(PlatformError::Unavailable(_)))
    ));
    let denied = br#"{"code":"Forbidden.AccessDenied.AccessTokenPermissionDenied","message":"no",
        "accessdenieddetail":{"requiredScopes":["Card.Streaming.Write"]}}"#;
    let error: PlatformError = outcome(403, &none, denied).unwrap_err().into();
    let PlatformError::Refused(words) = error else {
        panic!("refused for good");
    };
    assert!(words.contains("Card.Streaming.Write"), "{words}");
}
