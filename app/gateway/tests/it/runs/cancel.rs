//! Cancellation, rollback and deletion of runs.

use serde_json::{Value, json};

use super::GONE;
use crate::support::{Gateway, saying};

#[tokio::test]
async fn cancel_response_matches_each_dialect() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let slow = async || {
        let run = gateway
            .post(&format!("/api/threads/{thread}/runs"), saying("slow"))
            .await
            .json();
        run["run_id"].as_str().expect("an id").to_owned()
    };
    let run = slow().await;
    let bad = gateway
        .post(
            &format!("/api/threads/{thread}/runs/{run}/cancel?action=bogus"),
            Value::Null,
        )
        .await;
    assert_eq!(
        (bad.code(), &bad.json()["detail"][0]["type"]),
        (422, &json!("literal_error"))
    );
    let cancelled = gateway
        .post(
            &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1&action=interrupt"),
            Value::Null,
        )
        .await;
    assert_eq!((cancelled.code(), cancelled.body.len()), (204, 0));
    assert_eq!(
        gateway.wait_for_status(&thread, &run).await["status"],
        "interrupted"
    );
    let again = gateway
        .post(
            &format!("/api/threads/{thread}/runs/{run}/cancel"),
            Value::Null,
        )
        .await;
    assert_eq!((again.code(), again.body.len()), (202, 0));
    let root = gateway
        .post(&format!("/threads/{thread}/runs/{run}/cancel"), Value::Null)
        .await;
    assert_eq!(root.code(), 404);

    let run = slow().await;
    let waited = gateway
        .post(
            &format!("/threads/{thread}/runs/{run}/cancel?wait=true"),
            Value::Null,
        )
        .await;
    assert_eq!((waited.code(), waited.json()), (200, json!({})));
    assert_eq!(
        waited.header("content-location"),
        format!("/threads/{thread}/runs/{run}")
    );

    let waited = gateway
        .post(&format!("/api/threads/{thread}/runs/wait"), saying("say x"))
        .await;
    let done = waited
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    let late = gateway
        .post(
            &format!("/api/threads/{thread}/runs/{done}/cancel"),
            Value::Null,
        )
        .await;
    assert_eq!(
        (late.code(), late.json()),
        (
            409,
            json!({ "detail": format!("Run {done} is not cancellable (status: success)") })
        )
    );
    assert_eq!(
        gateway
            .post(
                &format!("/threads/{thread}/runs/{done}/cancel"),
                Value::Null
            )
            .await
            .code(),
        404
    );
    let unknown = gateway
        .post(
            &format!("/threads/{thread}/runs/{GONE}/cancel"),
            Value::Null,
        )
        .await;
    assert_eq!(
        (unknown.code(), unknown.json()),
        (404, json!({ "detail": "No runs found to cancel." }))
    );
}

#[tokio::test]
async fn rolled_back_run_is_an_error_in_deerflow_only() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("slow"))
        .await
        .json();
    let run = run["run_id"].as_str().expect("an id");
    gateway
        .post(
            &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1&action=rollback"),
            Value::Null,
        )
        .await;
    assert_eq!(
        gateway.wait_for_status(&thread, run).await["status"],
        "error"
    );
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/runs/{run}"))
            .await
            .code(),
        404
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/messages/page"))
            .await
            .json()["data"],
        json!([])
    );
}

#[tokio::test]
async fn several_runs_are_cancelled_at_once() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await
        .json()["run_id"]
        .clone();
    let cancelled = gateway
        .post(
            "/runs/cancel",
            json!({ "thread_id": thread, "run_ids": [run] }),
        )
        .await;
    assert_eq!((cancelled.code(), cancelled.body.len()), (204, 0));
    gateway
        .wait_for_status(&thread, run.as_str().expect("an id"))
        .await;
    for body in [
        json!({ "status": "bogus" }),
        json!({ "status": "all", "thread_id": thread }),
        json!({}),
    ] {
        assert_eq!(gateway.post("/runs/cancel", body).await.code(), 422);
    }
    assert_eq!(
        gateway
            .post(
                "/runs/cancel",
                json!({ "thread_id": thread, "run_ids": [GONE] })
            )
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn active_run_is_not_deleted() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let path = format!("/threads/{thread}/runs/{run}");
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 409);
    gateway
        .post(&format!("{path}/cancel?wait=1"), Value::Null)
        .await;
    let deleted = gateway.send("DELETE", &path, None).await;
    assert_eq!((deleted.code(), deleted.body.len()), (204, 0));
    assert_eq!(gateway.get(&path).await.code(), 404);
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 404);
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/runs/abc"))
            .await
            .json(),
        json!({ "detail": "Invalid run ID: must be a UUID" })
    );
}
