//! Tests of streamed answers, of their errors, and of rejected keys.

use super::*;

const STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_tokens\":3}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüße 🦌\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
);
const END: &str = concat!(
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

async fn call_model(
    answer: TestResponse,
    extra: Value,
) -> (String, Option<crate::ModelError>, Vec<(String, Value)>) {
    let server = TestServer::start([answer]).await;
    let mut keys = json!({"base_url": server.address, "api_key": "sk-canary"});
    keys.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let (message, failure) = ask(
        &*model("anthropic", keys),
        request(vec![Message::human("hi")]),
    )
    .await;
    (message.content.text(), failure, server.requests())
}

#[tokio::test]
async fn stream_is_requested_and_decoded_bytewise() {
    let (text, failure, requests) = call_model(
        TestResponse::Bytewise(format!("{STREAM}{END}")),
        json!({"betas": ["b-1", "b-2"]}),
    )
    .await;
    assert_eq!((text.as_str(), failure), ("Grüße 🦌", None));
    for part in [
        "post /v1/messages ",
        "x-api-key: sk-canary",
        "anthropic-version: 2023-06-01",
        "anthropic-beta: b-1,b-2",
    ] {
        assert!(requests[0].0.contains(part), "{part}: {}", requests[0].0);
    }
}

#[tokio::test]
async fn sign_in_token_is_sent_as_bearer_without_cache() {
    let extra = json!({"api_key": "sk-ant-oat01-x", "enable_prompt_caching": true, "billing_header": "plan"});
    let (_, failure, requests) =
        call_model(TestResponse::Stream(format!("{STREAM}{END}")), extra).await;
    assert_eq!(failure, None);
    let (head, body) = &requests[0];
    assert!(
        head.contains("authorization: bearer sk-ant-oat01-x")
            && head.contains("anthropic-beta: oauth-2025-04-20"),
        "{head}"
    );
    assert!(!head.contains("x-api-key") && !body.to_string().contains("cache_control"));
    assert_eq!(
        (&body["system"][0]["text"], &body["system"][1]["text"]),
        (&json!("plan"), &json!("Rules."))
    );
}

#[tokio::test]
async fn broken_answers_have_an_error_kind() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let table = [
        (
            TestResponse::Broken(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Stream(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: {{nope\n\n")),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: {overloaded}\n\n")),
            ModelErrorKind::Busy,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Json(529, "retry-after: 3\r\n", overloaded),
            ModelErrorKind::Busy,
            "",
            Some(3),
        ),
        (
            TestResponse::Json(
                401,
                "",
                json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key sk-canary"}}),
            ),
            ModelErrorKind::Auth,
            "",
            None,
        ),
        (
            TestResponse::Json(
                400,
                "",
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
            ),
            ModelErrorKind::Quota,
            "",
            None,
        ),
        (
            TestResponse::Json(
                400,
                "",
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}),
            ),
            ModelErrorKind::BadRequest,
            "",
            None,
        ),
    ];
    for (answer, kind, expected_text, wait) in table {
        let (text, failure, _) = call_model(answer.clone(), json!({})).await;
        let failure = failure.unwrap();
        assert_eq!(
            (
                text.as_str(),
                failure.kind,
                failure.retry_after.map(|wait| wait.as_secs())
            ),
            (expected_text, kind, wait),
            "{answer:?}"
        );
        assert!(!failure.message.contains("canary"), "{failure}");
    }
}

#[tokio::test]
async fn rejected_key_is_followed_by_the_next() {
    let slow =
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    let server = TestServer::start([
        TestResponse::Json(429, "", slow),
        TestResponse::Stream(format!("{STREAM}{END}")),
    ])
    .await;
    let model = model(
        "claude",
        json!({"base_url": server.address, "api_keys": ["key-number-1", "key-number-2"]}),
    );
    for _ in 0..2 {
        assert_eq!(
            ask(&*model, request(vec![Message::human("hi")])).await.1,
            None
        );
    }
    let keys: Vec<bool> = server
        .requests()
        .iter()
        .map(|(head, _)| head.contains("x-api-key: key-number-2"))
        .collect();
    assert_eq!(keys, [false, true, true], "the second key stays in use");
}
