//! Tests of the meaning of answers.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::{ApiError, outcome};
use crate::platform::PlatformError;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn rate_limit_names_its_delay_with_fraction() {
    let limit = |pairs: &[(&'static str, &'static str)], body: &str| match outcome(
        429,
        &headers(pairs),
        body.as_bytes(),
    ) {
        Err(ApiError::Failed(PlatformError::RateLimited {
            retry_after,
            account,
        })) => (retry_after, account),
        other => panic!("{other:?}"),
    };
    let ms = Duration::from_millis;
    let cases = [
        (
            limit(
                &[("retry-after", "1")],
                r#"{"retry_after":0.3,"global":false}"#,
            ),
            (ms(300), false),
        ),
        (
            limit(&[], r#"{"retry_after":2,"global":true}"#),
            (ms(2000), true),
        ),
        (
            limit(&[("retry-after", "7")], r#"{"global":false}"#),
            (ms(7000), false),
        ),
        (limit(&[], r#"{"retry_after":"x"}"#), (ms(5000), false)),
        (limit(&[], r#"{"retry_after":-1}"#), (ms(5000), false)),
        (
            limit(&[], r#"{"retry_after":1e300}"#),
            (ms(86_400_000), false),
        ),
        (
            limit(&[("retry-after", "11")], "<html>"),
            (ms(11_000), true),
        ),
        (limit(&[], "<html>"), (ms(60_000), true)),
        (
            limit(&[("x-ratelimit-scope", "global")], r#"{"retry_after":1}"#),
            (ms(1000), true),
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn answers_become_results_and_words() {
    let none = HeaderMap::new();
    assert_eq!(outcome(204, &none, b"").unwrap(), serde_json::Value::Null);
    assert_eq!(outcome(200, &none, b"{}").unwrap(), serde_json::json!({}));
    assert!(matches!(
        outcome(200, &none, b"<html>"),
        Err(ApiError::Failed(PlatformError::Unavailable(_)))
    ));
    assert!(matches!(
        outcome(401, &none, b""),
        Err(ApiError::Failed(PlatformError::Rejected(_)))
    ));
    assert!(matches!(
        outcome(502, &none, b"<html>"),
        Err(ApiError::Failed(PlatformError::Unavailable(_)))
    ));
    let error = outcome(
        403,
        &none,
        br#"{"code":50013,"message":"Missing Permissions"}"#,
    )
    .unwrap_err();
    assert_eq!(error.code(), Some(50013));
    let PlatformError::Refused(words) = error.into() else {
        panic!("refused for good");
    };
    assert!(words.contains("lacks a permission"), "{words}");
}
