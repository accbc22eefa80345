//! Rejections before a route sees the request, in both dialects.

use deerflow_gateway::guard::auth::KeyRule;
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse, saying, saying_with};

/// Returns the first location of an error of either dialect, in DeerFlow's form.
fn first_location(response: &HttpResponse) -> String {
    match &response.json()["detail"] {
        Value::Array(issues) => issues[0]["loc"].to_string(),
        text => text.as_str().expect("a text").to_owned(),
    }
}

#[tokio::test]
async fn compressed_body_is_415_in_either_dialect() {
    let gateway = Gateway::new();
    for path in ["/threads", "/api/threads", "/api/langgraph/threads"] {
        for coding in ["gzip", "br", "deflate, identity", "zstd"] {
            let refused = gateway
                .raw("POST", path, "{}", &[("content-encoding", coding)])
                .await;
            assert_eq!(
                (refused.code(), refused.header("accept-encoding")),
                (415, "identity"),
                "{path} {coding}"
            );
        }
        assert_eq!(
            gateway
                .raw("POST", path, "{}", &[("content-encoding", "identity")])
                .await
                .code(),
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn number_beyond_64_bits_is_422_with_its_location() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let big = "18446744073709551616";
    for (path, body, expected) in [
        (
            "/api/threads",
            format!("{{\"metadata\":{{\"a\":[1,{big}]}}}}"),
            r#"["body","metadata","a",1]"#,
        ),
        (
            "/api/threads",
            "{\"metadata\":{\"a\":1e400}}".to_owned(),
            r#"["body","metadata","a"]"#,
        ),
        (
            "/api/threads/search",
            "{\"limit\":-9223372036854775809}".to_owned(),
            r#"["body","limit"]"#,
        ),
        (
            "/threads",
            format!("{{\"metadata\":{{\"a\":[1,{big}]}}}}"),
            r#"["metadata"]["a"][1]"#,
        ),
        (
            "/threads/search",
            format!("{{\"limit\":{big}}}"),
            r#"["limit"]"#,
        ),
        (
            "/threads",
            "{\"metadata\":{\"a\":-1e400}}".to_owned(),
            r#"["metadata"]["a"]"#,
        ),
        (
            &*format!("/threads/{thread}/runs"),
            format!("{{\"assistant_id\":\"lead_agent\",\"after_seconds\":{big}}}"),
            r#"["after_seconds"]"#,
        ),
    ] {
        let refused = gateway.raw("POST", path, body.clone(), &[]).await;
        assert!(
            refused.code() == 422 && first_location(&refused).contains(expected),
            "{path} {body}: {}",
            refused.text()
        );
    }
    for path in ["/threads", "/api/threads"] {
        let fits = json!({ "metadata": { "most": u64::MAX, "least": i64::MIN, "text": big } });
        let made = gateway.post(path, fits.clone()).await.json();
        for (key, value) in fits["metadata"].as_object().expect("metadata") {
            assert_eq!(&made["metadata"][key], value);
        }
    }
    for path in ["/threads", "/api/threads"] {
        for limit in [
            "99999999999999999999",
            "-1",
            "1e400",
            "18446744073709551615",
        ] {
            let refused = gateway
                .get(&format!("{path}/{thread}/runs?limit={limit}"))
                .await;
            assert!(
                refused.code() == 422 && refused.text().contains("limit"),
                "{path} {limit}: {}",
                refused.text()
            );
        }
    }
}

#[tokio::test]
async fn syntax_error_is_reported_with_line_and_column() {
    let gateway = Gateway::new();
    for path in ["/threads", "/api/threads", "/api/langgraph/threads"] {
        let refused = gateway
            .raw("POST", path, "{\n  \"metadata\": {,}\n}", &[])
            .await;
        assert!(
            refused.code() == 422 && refused.text().contains("at line 2 column 16"),
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn a_recursion_limit_below_one_is_422() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for prefix in ["", "/api", "/api/langgraph"] {
        for limit in [-1, 0] {
            let body = saying_with("hi", json!({ "config": { "recursion_limit": limit } }));
            let refused = gateway
                .post(&format!("{prefix}/threads/{thread}/runs/wait"), body)
                .await;
            assert!(
                refused.code() == 422 && first_location(&refused).contains("recursion_limit"),
                "{prefix}: {}",
                refused.text()
            );
        }
    }
}

#[tokio::test]
async fn message_of_wrong_type_is_reported_by_location() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let message = json!({ "input": { "messages": [{ "role": "user", "content": 5 }] } });
    let body = saying_with("hi", message);
    let wrong = "expected a string or a list of content blocks, found a number";
    let platform = gateway
        .post(&format!("/threads/{thread}/runs/wait"), body.clone())
        .await;
    assert_eq!(
        (platform.code(), platform.json()),
        (
            422,
            json!({ "detail": format!("input.messages.0.content: {wrong}") })
        )
    );
    for prefix in ["/api", "/api/langgraph"] {
        let deerflow = gateway
            .post(
                &format!("{prefix}/threads/{thread}/runs/wait"),
                body.clone(),
            )
            .await;
        let detail =
            json!({ "detail": format!("Invalid message at input.messages[0].content: {wrong}") });
        assert_eq!((deerflow.code(), deerflow.json()), (400, detail));
    }
    assert_eq!(
        gateway
            .post(&format!("/threads/{thread}/runs/wait"), saying("hi"))
            .await
            .code(),
        200
    );
    let update = json!({ "values": { "messages": [{ "type": "ai", "content": "x", "tool_calls": [{ "id": "c" }] }] } });
    let refused = gateway
        .post(&format!("/threads/{thread}/state"), update)
        .await;
    assert!(
        refused
            .text()
            .contains("values.messages.0.tool_calls.0.name: a required field is missing"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn request_without_a_key_explains_how_to_get_one() {
    let gateway = Gateway::new().with_rule(KeyRule::Required);
    for path in [
        "/threads/x",
        "/api/threads/x",
        "/api/langgraph/threads/x",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/api/openapi.json",
        "/nope",
    ] {
        let refused = gateway.get(path).await;
        assert_eq!(
            (refused.code(), refused.header("www-authenticate")),
            (401, "Bearer realm=\"deerflow\""),
            "{path}"
        );
        assert!(
            refused.text().contains("deerflow keys create"),
            "{}",
            refused.text()
        );
    }
    for path in ["/ok", "/health", "/ready", "/info"] {
        assert_eq!(gateway.get(path).await.code(), 200, "{path}");
    }
}

#[tokio::test]
async fn declared_length_above_the_limit_is_413_unread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let endless = || axum::body::Body::new(Declared(u64::MAX / 2));
    for path in [
        "/threads",
        "/api/threads",
        &format!("/api/threads/{thread}/uploads"),
    ] {
        let kind = [("content-type", "multipart/form-data; boundary=x")];
        let refused = gateway.raw("POST", path, endless(), &kind).await;
        assert_eq!(refused.code(), 413, "{path}: {}", refused.text());
    }
}

/// A body that declares a length but is never sent.
struct Declared(u64);

impl axum::body::HttpBody for Declared {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0)
    }
}
