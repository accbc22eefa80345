//! Retried requests that create threads, crons and uploads.

use futures_util::future::join_all;
use serde_json::json;

use super::{NAME, REPLAYED, send_with_key};
use crate::support::{Gateway, saying_with};

#[tokio::test]
async fn retried_thread_request_returns_the_same_thread() {
    let gateway = Gateway::new();
    for path in ["/threads", "/api/threads"] {
        let body = json!({ "metadata": { "a": 1 } });
        let first = send_with_key(&gateway, path, "k", &body).await;
        let again = send_with_key(&gateway, path, "k", &body).await;
        assert_eq!(
            (first.code(), again.code(), again.header(REPLAYED)),
            (200, 200, "true"),
            "{path}"
        );
        assert_eq!(first.json(), again.json());
        assert_eq!(
            send_with_key(&gateway, path, "k", &json!({ "metadata": { "a": 2 } }))
                .await
                .code(),
            422
        );
        let thread = first.json()["thread_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        gateway
            .send("DELETE", &format!("/threads/{thread}"), None)
            .await;
        // The resource was deleted; a retry does not create it again.
        assert_eq!(send_with_key(&gateway, path, "k", &body).await.code(), 404);
    }
}

#[tokio::test]
async fn retried_cron_request_returns_the_same_cron() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for path in [
        "/runs/crons".to_owned(),
        format!("/threads/{thread}/runs/crons"),
    ] {
        let body = saying_with("say x", json!({ "schedule": "0 3 * * *" }));
        let retries = join_all((0..4).map(|_| send_with_key(&gateway, &path, "k", &body))).await;
        let first = retries[0].json()["cron_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert!(
            retries
                .iter()
                .all(|retry| retry.code() == 200 && retry.json()["cron_id"] == first.as_str()),
            "{}",
            retries[1].text()
        );
        assert_eq!(
            retries
                .iter()
                .filter(|retry| retry.header(REPLAYED) != "true")
                .count(),
            1
        );
        let other = saying_with("say x", json!({ "schedule": "0 4 * * *" }));
        assert_eq!(
            send_with_key(&gateway, &path, "k", &other).await.code(),
            422
        );
        // A retry returns its current state, and does not create it again after its deletion.
        gateway
            .send(
                "PATCH",
                &format!("/runs/crons/{first}"),
                Some(json!({ "enabled": false })),
            )
            .await;
        assert_eq!(
            send_with_key(&gateway, &path, "k", &body).await.json()["enabled"],
            false
        );
        assert_eq!(
            gateway
                .send("DELETE", &format!("/runs/crons/{first}"), None)
                .await
                .code(),
            204
        );
        assert_eq!(send_with_key(&gateway, &path, "k", &body).await.code(), 404);
    }
    assert_eq!(gateway.post("/runs/crons/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn seeded_thread_is_created_once() {
    let gateway = Gateway::new();
    let message = json!({ "type": "human", "content": "hello" });
    let steps =
        json!([{ "updates": [{ "values": { "messages": [message] }, "as_node": "__input__" }] }]);
    let body = json!({ "metadata": { "graph_id": "lead_agent" }, "supersteps": steps });
    let retries =
        join_all((0..4).map(|_| send_with_key(&gateway, "/threads", "seed", &body))).await;
    let first = retries[0].json()["thread_id"].clone();
    for retry in &retries {
        assert_eq!((retry.code(), &retry.json()["thread_id"]), (200, &first));
        assert_eq!(
            retry.json()["values"]["messages"][0]["content"],
            "hello",
            "{}",
            retry.text()
        );
    }
    assert_eq!(
        retries
            .iter()
            .filter(|retry| retry.header(REPLAYED) != "true")
            .count(),
        1
    );
    assert_eq!(
        gateway
            .post("/threads/search", json!({}))
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn retried_upload_returns_the_first_response() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/uploads");
    let send = |name: &'static str, text: &str| {
        let form = format!(
            "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\n{text}\r\n--B--\r\n"
        );
        let headers = [
            ("content-type", "multipart/form-data; boundary=B"),
            (NAME, name),
        ];
        let (gateway, path) = (&gateway, path.clone());
        async move { gateway.raw("POST", &path, form, &headers).await }
    };
    let first = send("k", "one").await;
    assert_eq!(first.code(), 200, "{}", first.text());
    send("other", "two").await;
    let again = send("k", "one").await;
    assert_eq!(
        (again.json(), again.header(REPLAYED)),
        (first.json(), "true")
    );
    assert_eq!(send("k", "three").await.code(), 422);
    let stored = gateway
        .get(&format!(
            "/api/threads/{thread}/artifacts/mnt/user-data/uploads/a.txt"
        ))
        .await;
    assert_eq!(stored.text(), "two");
}
