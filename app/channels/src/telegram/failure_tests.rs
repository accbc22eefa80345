//! Tests of the decoding of failures.

use serde_json::json;

use super::*;

fn problem_of(body: &Value) -> Problem {
    decode_answer(400, body.to_string().as_bytes())
        .unwrap_err()
        .problem
}

#[test]
fn success_returns_the_result() {
    let answer = decode_answer(200, br#"{"ok":true,"result":{"message_id":9}}"#);
    assert_eq!(answer, Ok(json!({"message_id": 9})));
}

#[test]
fn descriptions_and_codes_have_a_meaning() {
    let seconds = |seconds| Problem::RateLimited(Duration::from_secs(seconds));
    for (code, description, parameters, expected) in [
        (
            429,
            "Too Many Requests: retry after 3",
            json!({"retry_after": 33}),
            seconds(33),
        ),
        (
            429,
            "Too Many Requests: retry after 13938",
            json!(null),
            seconds(13_938),
        ),
        (
            429,
            "Too Many Requests",
            json!({"retry_after": "soon"}),
            seconds(3),
        ),
        (
            429,
            "Too Many Requests",
            json!({"retry_after": -1e300}),
            seconds(3),
        ),
        (401, "Unauthorized", json!(null), Problem::Unauthorized),
        (404, "Not Found", json!(null), Problem::NotFound),
        (
            409,
            "Conflict: terminated by other getUpdates request",
            json!(null),
            Problem::OtherPoller,
        ),
        (
            409,
            "Conflict: can't use getUpdates method while webhook is active",
            json!(null),
            Problem::Webhook,
        ),
        (
            403,
            "Forbidden: bot was blocked by the user",
            json!(null),
            Problem::Forbidden,
        ),
        (
            400,
            "Bad Request: message is not modified: specified new message content",
            json!(null),
            Problem::NotModified,
        ),
        (
            400,
            "Bad Request: message to be replied not found",
            json!(null),
            Problem::ReplyMissing,
        ),
        (
            400,
            "Bad Request: message thread not found",
            json!(null),
            Problem::TopicMissing,
        ),
        (
            400,
            "Bad Request: can't parse entities: Unsupported start tag \"h1\"",
            json!(null),
            Problem::BadMarkup,
        ),
        (
            400,
            "Bad Request: message to edit not found",
            json!(null),
            Problem::NotEditable,
        ),
        (
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            json!({"migrate_to_chat_id": -1007}),
            Problem::Migrated(-1007),
        ),
        (
            400,
            "Bad Request: chat not found",
            json!(null),
            Problem::Refused,
        ),
        (
            413,
            "Request Entity Too Large",
            json!(null),
            Problem::Refused,
        ),
        (502, "Bad Gateway", json!(null), Problem::Unavailable),
    ] {
        let body = json!({
            "ok": false, "error_code": code, "description": description, "parameters": parameters,
        });
        assert_eq!(problem_of(&body), expected, "{description}");
    }
}

#[test]
fn unreadable_answers_follow_their_status() {
    for (status, body, expected) in [
        (502, "<html>Bad Gateway</html>", Problem::Unavailable),
        (200, "<html>login</html>", Problem::Unavailable),
        (200, "{\"ok\":", Problem::Unavailable),
        (404, "not found", Problem::NotFound),
        (200, "[1]", Problem::Unavailable),
        (200, r#"{"ok":"yes"}"#, Problem::Unavailable),
        (500, r#"{"ok":true,"result":1}"#, Problem::Unavailable),
        (
            400,
            r#"{"ok":false,"error_code":1e99,"description":7}"#,
            Problem::Refused,
        ),
    ] {
        let failure = decode_answer(status, body.as_bytes()).unwrap_err();
        assert_eq!(failure.problem, expected, "{status} {body}");
    }
}

#[test]
fn rate_limit_reaches_the_core_exactly() {
    let error = PlatformError::from(Failure {
        problem: Problem::RateLimited(Duration::from_secs(222)),
        description: String::new(),
    });
    assert_eq!(
        error,
        PlatformError::RateLimited {
            retry_after: Duration::from_secs(222),
            account: false
        }
    );
}
