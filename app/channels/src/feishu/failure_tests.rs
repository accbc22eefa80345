//! Tables of answers and their meaning.

use serde_json::json;

use super::*;

fn judged(
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &Value,
) -> Result<Value, FeishuFailure> {
    judge(
        StatusCode::from_u16(status).unwrap(),
        &header_map(headers),
        body.to_string().as_bytes(),
    )
}

fn header_map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

fn code(code: i64) -> Value {
    json!({"code": code, "msg": "words"})
}

#[test]
fn rate_limit_takes_the_delay_of_the_header() {
    const RESET: &str = "x-ogw-ratelimit-reset";
    let seconds = |seconds| Err(FeishuFailure::RateLimited(Duration::from_secs_f64(seconds)));
    let cases = [
        (429, vec![(RESET, "33")], code(99_991_400), seconds(33.0)),
        (400, vec![(RESET, "1")], code(99_991_400), seconds(1.0)),
        (400, vec![(RESET, "0.5")], code(99_991_400), seconds(0.5)),
        (429, vec![("retry-after", "2")], json!({}), seconds(2.0)),
        (429, vec![(RESET, "1e300")], code(1), seconds(3600.0)),
        (429, vec![(RESET, "-1")], code(1), Err(FeishuFailure::Busy)),
        (429, vec![(RESET, "NaN")], code(1), Err(FeishuFailure::Busy)),
        (429, vec![], code(99_991_400), Err(FeishuFailure::Busy)),
        (400, vec![], code(230_020), Err(FeishuFailure::Busy)),
        (200, vec![], code(11_232), Err(FeishuFailure::Busy)),
        (400, vec![], code(11_247), Err(FeishuFailure::Busy)),
    ];
    for (status, headers, body, expected) in cases {
        assert_eq!(
            judged(status, &headers, &body),
            expected,
            "{status} {headers:?}"
        );
    }
}

#[test]
fn codes_have_their_meaning() {
    let words = |code: i64| format!("words (code {code})");
    let cases = [
        (400, 99_991_663, FeishuFailure::StaleToken),
        (401, 99_991_664, FeishuFailure::StaleToken),
        (400, 99_991_668, FeishuFailure::StaleToken),
        (
            400,
            99_991_672,
            FeishuFailure::MissingScope(words(99_991_672)),
        ),
        (400, 230_002, FeishuFailure::TargetGone(words(230_002))),
        (400, 230_011, FeishuFailure::TargetGone(words(230_011))),
        (200, 230_017, FeishuFailure::TargetGone(words(230_017))),
        (400, 230_001, FeishuFailure::ContentRefused(words(230_001))),
        (400, 230_099, FeishuFailure::ContentRefused(words(230_099))),
        (400, 300_317, FeishuFailure::Refused(words(300_317))),
        (500, 300_317, FeishuFailure::Unavailable(words(300_317))),
        (200, 2200, FeishuFailure::Unavailable(words(2200))),
    ];
    for (status, number, expected) in cases {
        assert_eq!(judged(status, &[], &code(number)), Err(expected));
    }
}

#[test]
fn bodies_of_others_are_not_successes() {
    let judge = |status, body: &[u8]| {
        judge(
            StatusCode::from_u16(status).unwrap(),
            &HeaderMap::new(),
            body,
        )
    };
    for body in [
        &b"<html>login</html>"[..],
        b"[]",
        b"",
        b"\xff",
        b"{\"code\":\"x\"}",
    ] {
        assert!(matches!(
            judge(200, body),
            Err(FeishuFailure::Unavailable(_))
        ));
        assert!(matches!(
            judge(302, body),
            Err(FeishuFailure::Unavailable(_))
        ));
        assert!(matches!(
            judge(502, body),
            Err(FeishuFailure::Unavailable(_))
        ));
        assert!(matches!(judge(404, body), Err(FeishuFailure::Refused(_))));
    }
    assert!(judge(200, b"{\"code\":0,\"data\":{}}").is_ok());
    assert!(judge(200, b"{\"code\":\"0\"}").is_ok());
}

#[test]
fn delay_without_a_header_grows_with_the_attempt() {
    let delays: Vec<u64> = (1..6)
        .map(|attempt| match FeishuFailure::Busy.into_error(attempt) {
            PlatformError::RateLimited {
                retry_after,
                account: false,
            } => retry_after.as_secs(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(delays, [1, 3, 9, 9, 9]);
}

#[test]
fn only_invalid_credentials_reject_the_token() {
    let judged = |status, body: Value| {
        judge_token(
            StatusCode::from_u16(status).unwrap(),
            &HeaderMap::new(),
            body.to_string().as_bytes(),
        )
    };
    for number in [10_003, 10_014, 99_991_543] {
        assert!(matches!(
            judged(200, code(number)),
            Err(FeishuFailure::Rejected(_))
        ));
    }
    for (status, number) in [(200, 1), (500, 10_014), (400, 99_991_663), (400, 20_000)] {
        assert!(matches!(
            judged(status, code(number)),
            Err(FeishuFailure::Unavailable(_))
        ));
    }
    let issued = judged(
        200,
        json!({"code": 0, "tenant_access_token": "t", "expire": "60"}),
    );
    let expected = IssuedToken {
        value: "t".to_owned(),
        seconds: 60,
    };
    assert_eq!(issued, Ok(expected));
}
