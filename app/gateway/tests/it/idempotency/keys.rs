//! Validity and scope of keys.

use serde_json::json;

use super::{NAME, REPLAYED, runs_of, send_with_key};
use crate::support::{Gateway, saying, saying_with};

#[tokio::test]
async fn rejected_request_does_not_use_up_its_key() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let slow = send_with_key(&gateway, &path, "slow", &saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let rejects = saying_with("say x", json!({ "multitask_strategy": "reject" }));
    assert_eq!(
        send_with_key(&gateway, &path, "k", &rejects).await.code(),
        409
    );
    assert_eq!(
        gateway
            .post(&format!("{path}/{slow}/cancel?wait=1"), json!({}))
            .await
            .code(),
        200
    );
    let made = send_with_key(&gateway, &path, "k", &rejects).await;
    assert_eq!((made.code(), made.header(REPLAYED)), (200, ""));
    // A thread whose seed is rejected does not use up its key.
    let bad = json!({ "supersteps": [{ "updates": [{ "values": { "messages": [{ "type": "nonsense" }] }, "as_node": "__input__" }] }] });
    let refused = send_with_key(&gateway, "/threads", "seed", &bad)
        .await
        .code();
    assert!((400..500).contains(&refused), "{refused}");
    assert_eq!(
        send_with_key(&gateway, "/threads", "seed", &bad)
            .await
            .code(),
        refused
    );
    assert_eq!(
        send_with_key(&gateway, "/threads", "seed", &json!({}))
            .await
            .code(),
        200
    );
}

#[tokio::test]
async fn keys_are_scoped_to_user_and_route_and_validated() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let long = "x".repeat(256);
    for bad in ["", " ", "a b", "a\tb", "\u{e9}", long.as_str()] {
        for path in [path.as_str(), "/threads", "/runs/batch"] {
            let response = send_with_key(&gateway, path, bad, &saying("say x")).await;
            assert_eq!(response.code(), 422, "{bad:?}: {}", response.text());
            assert!(
                response.json()["detail"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("Idempotency-Key")),
                "{}",
                response.text()
            );
        }
    }
    let twice = gateway
        .raw(
            "POST",
            &path,
            saying("say x").to_string(),
            &[(NAME, "a"), (NAME, "b")],
        )
        .await;
    assert_eq!((twice.code(), runs_of(&gateway, &thread).await), (422, 0));
    // The same key on another thread is a different request.
    let other = gateway.thread().await;
    assert_eq!(
        send_with_key(&gateway, &path, "k", &saying("say x"))
            .await
            .code(),
        200
    );
    assert_eq!(
        send_with_key(
            &gateway,
            &format!("/threads/{other}/runs"),
            "k",
            &saying("say x")
        )
        .await
        .code(),
        422
    );
    assert_eq!(
        send_with_key(
            &gateway,
            &format!("/threads/{other}/runs/wait"),
            "k",
            &saying("say x")
        )
        .await
        .code(),
        200
    );
}
