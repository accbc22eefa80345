//! Tests of the meaning of failures.

use super::*;

fn decoded(method: &str, status: u16, retry: Option<&str>, body: &str) -> Result<Value, Failure> {
    decode(
        method,
        StatusCode::from_u16(status).unwrap(),
        retry,
        body.as_bytes(),
    )
}

fn code(code: &str) -> Failure {
    Failure::Code {
        code: code.to_owned(),
        needed: None,
    }
}

#[test]
fn answers_decode_to_their_failures() {
    let seconds = |count| Failure::Limited(Duration::from_secs(count));
    let cases = [
        (
            "chat.update",
            429,
            Some("33"),
            r#"{"ok":false,"error":"ratelimited"}"#,
            seconds(33),
        ),
        ("chat.update", 429, Some("x"), "", seconds(5)),
        ("chat.update", 429, Some("1e300"), "", seconds(5)),
        (
            "chat.update",
            429,
            Some("9999999"),
            "",
            Failure::Limited(MAX_RETRY),
        ),
        ("apps.connections.open", 429, None, "", seconds(30)),
        (
            "chat.update",
            200,
            None,
            r#"{"ok":false,"error":"rate_limited"}"#,
            seconds(5),
        ),
        (
            "chat.update",
            200,
            None,
            r#"{"ok":false,"error":"is_archived"}"#,
            code("is_archived"),
        ),
        (
            "chat.startStream",
            404,
            None,
            "<html>",
            code("unknown_method"),
        ),
    ];
    for (method, status, retry, body, expected) in cases {
        assert_eq!(
            decoded(method, status, retry, body),
            Err(expected),
            "{method} {body}"
        );
    }
}

#[test]
fn answers_without_a_result_are_lost() {
    for (status, body) in [
        (200, ""),
        (200, "[]"),
        (200, r#"{"ok":"yes"}"#),
        (502, r#"{"ok":true}"#),
        (503, r#"{"ok":false,"error":"is_archived"}"#),
        (200, r#"{"ok":false,"error":"internal_error"}"#),
    ] {
        let failure = decoded("chat.update", status, None, body).unwrap_err();
        assert!(matches!(failure, Failure::Lost(_)), "{status} {body}");
    }
}

#[test]
fn invalid_tokens_are_final() {
    for final_code in ["invalid_auth", "token_revoked", "account_inactive"] {
        let error = platform_error("auth.test", code(final_code));
        assert!(matches!(error, PlatformError::Rejected(_)), "{final_code}");
    }
    let error = platform_error("chat.postMessage", code("not_in_channel"));
    assert!(matches!(error, PlatformError::Refused(_)));
}

#[test]
fn missing_scope_names_the_scope() {
    let body = r#"{"ok":false,"error":"missing_scope","needed":"chat:write"}"#;
    let failure = decoded("chat.postMessage", 200, None, body).unwrap_err();
    let error = platform_error("chat.postMessage", failure);
    assert!(error.to_string().contains("chat:write"));
}
