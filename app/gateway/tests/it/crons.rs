//! Crons over HTTP, and their runs.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::crons::{CronStore, Scheduler};
use deerflow_gateway::background::CronRuns;
use harness::clock::{Clock, ManualClock, SystemClock};
use serde_json::{Value, json};

use crate::support::{Gateway, saying, saying_with};

fn nightly(more: Value) -> Value {
    let mut body = saying_with("say good night", json!({ "schedule": "0 3 * * *" }));
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

fn in_two_days() -> DateTime<Utc> {
    SystemClock.now() + TimeDelta::days(2)
}

/// Fires all crons that are due at `moment`.
async fn fire_due(gateway: &Gateway, moment: DateTime<Utc>) {
    let clock = ManualClock::starting_at(moment);
    let crons: Arc<dyn CronStore> = gateway.crons.clone();
    Scheduler::new(
        crons,
        Arc::new(CronRuns::new(gateway.state.clone())),
        Arc::new(clock),
    )
    .poll()
    .await
    .expect("a poll");
}

#[tokio::test]
async fn cron_is_created_read_updated_and_deleted() {
    let gateway = Gateway::new();
    let body = nightly(
        json!({ "metadata": { "m": 1, "run_id": "forged" }, "timezone": "Asia/Tokyo", "end_time": "2999-01-01T00:00:00" }),
    );
    let cron = gateway.post("/runs/crons", body).await.json();
    let fields: Vec<&String> = cron.as_object().expect("a cron").keys().collect();
    let expected = "cron_id assistant_id thread_id user_id end_time schedule timezone payload next_run_date metadata on_run_completed \
                    enabled created_at updated_at";
    assert_eq!(fields, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        (
            &cron["metadata"],
            &cron["thread_id"],
            &cron["on_run_completed"]
        ),
        (&json!({ "m": 1 }), &Value::Null, &json!("delete"))
    );
    assert!(
        cron["next_run_date"]
            .as_str()
            .expect("a time")
            .ends_with("T18:00:00.000000+00:00"),
        "{cron}"
    );
    assert_eq!(
        cron["payload"]["config"]["configurable"]["cron_id"],
        cron["cron_id"]
    );
    let path = format!("/runs/crons/{}", cron["cron_id"].as_str().expect("an id"));
    assert_eq!(gateway.get(&path).await.json(), cron);

    let patch = json!({ "enabled": false, "schedule": "0 4 * * *", "timezone": "UTC", "end_time": null, "metadata": { "n": 2 } });
    let changed = gateway.send("PATCH", &path, Some(patch)).await.json();
    assert_eq!(
        (
            &changed["enabled"],
            &changed["schedule"],
            &changed["timezone"]
        ),
        (&json!(false), &json!("0 4 * * *"), &json!("UTC"))
    );
    assert_eq!(
        (&changed["metadata"], &changed["end_time"]),
        (&json!({ "m": 1, "n": 2 }), &Value::Null)
    );
    assert!(
        changed["next_run_date"]
            .as_str()
            .expect("a time")
            .ends_with("T04:00:00.000000+00:00")
    );
    for empty in [json!({}), json!({ "unknown": 1 })] {
        assert_eq!(gateway.send("PATCH", &path, Some(empty)).await.code(), 400);
    }
    let found = gateway
        .post(
            "/runs/crons/search",
            json!({ "metadata": { "n": 2 }, "select": ["cron_id"] }),
        )
        .await;
    assert_eq!(found.json(), json!([{ "cron_id": cron["cron_id"] }]));
    assert_eq!(found.header("x-pagination-total"), "1");
    assert_eq!(
        gateway
            .post("/runs/crons/count", json!({ "enabled": true }))
            .await
            .json(),
        json!(0)
    );
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 204);
    for method in ["GET", "DELETE"] {
        let gone = gateway.send(method, &path, None).await;
        assert_eq!(
            (gone.code(), gone.json()),
            (404, json!({ "detail": "Not Found" }))
        );
    }
    assert_eq!(
        gateway
            .send("PATCH", &path, Some(json!({ "enabled": true })))
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn cron_with_an_invalid_run_is_rejected_at_creation() {
    let gateway = Gateway::new();
    for (change, code) in [
        (json!({ "schedule": "not cron" }), 422),
        (json!({ "schedule": null }), 422),
        (json!({ "schedule": 5 }), 422),
        (json!({ "timezone": "Mars/Base" }), 422),
        (json!({ "end_time": "soon" }), 422),
        (json!({ "enabled": "yes" }), 422),
        (json!({ "on_run_completed": "burn" }), 422),
        (json!({ "metadata": [] }), 422),
        (json!({ "assistant_id": null }), 422),
        (json!({ "assistant_id": "nope" }), 422),
        (
            json!({ "assistant_id": "2bd06ce7-e763-4b9c-af17-60e5565443f1" }),
            404,
        ),
        (json!({ "input": "text" }), 422),
        (json!({ "stream_mode": "nope" }), 422),
    ] {
        let response = gateway.post("/runs/crons", nightly(change.clone())).await;
        assert_eq!(response.code(), code, "{change}: {}", response.text());
    }
    let unknown = "/threads/2bd06ce7-e763-4b9c-af17-60e5565443f1/runs/crons";
    assert_eq!(gateway.post(unknown, nightly(json!({}))).await.code(), 404);
    assert_eq!(gateway.get("/runs/crons/nope").await.code(), 422);
    for wrong in [
        json!({ "limit": 0 }),
        json!({ "assistant_id": "x" }),
        json!({ "sort_by": "x" }),
        json!({ "select": ["x"] }),
    ] {
        assert_eq!(
            gateway
                .post("/runs/crons/search", wrong.clone())
                .await
                .code(),
            422,
            "{wrong}"
        );
    }
    assert_eq!(
        gateway.post("/runs/crons/count", json!({})).await.json(),
        json!(0)
    );
}

#[tokio::test]
async fn crons_are_limited_in_number_and_size() {
    let gateway = Gateway::new();
    let text = "x".repeat(300_000);
    let long = json!({ "input": { "messages": [{ "type": "human", "content": text }] } });
    assert_eq!(
        gateway
            .post("/runs/crons", nightly(long.clone()))
            .await
            .code(),
        422
    );
    let made = gateway.post("/runs/crons", nightly(json!({}))).await.json();
    let path = format!("/runs/crons/{}", made["cron_id"].as_str().expect("an id"));
    assert_eq!(gateway.send("PATCH", &path, Some(long)).await.code(), 422);
    // Metadata is merged, so it could grow with each change.
    let piece = |key: &str| json!({ "metadata": { key: "x".repeat(40_000) } });
    assert_eq!(
        gateway.send("PATCH", &path, Some(piece("a"))).await.code(),
        200
    );
    assert_eq!(
        gateway.send("PATCH", &path, Some(piece("b"))).await.code(),
        413
    );
    for _ in 1..1_000 {
        assert_eq!(
            gateway
                .post("/runs/crons", nightly(json!({ "enabled": false })))
                .await
                .code(),
            200
        );
    }
    let refused = gateway.post("/runs/crons", nightly(json!({}))).await;
    assert_eq!(refused.code(), 409, "{}", refused.text());
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 204);
    assert_eq!(
        gateway.post("/runs/crons", nightly(json!({}))).await.code(),
        200
    );
}

#[tokio::test]
async fn a_cron_runs_on_its_thread_as_its_user() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let body = nightly(json!({ "context": { "model_name": "fake" } }));
    let cron = gateway
        .post(&format!("/threads/{thread}/runs/crons"), body)
        .await
        .json();
    assert_eq!(
        (&cron["thread_id"], &cron["on_run_completed"]),
        (&json!(thread), &Value::Null)
    );
    let moment = in_two_days();
    fire_due(&gateway, moment).await;
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await.json();
    let run = runs[0]["run_id"].as_str().expect("a run");
    assert_eq!(
        gateway.wait_for_status(&thread, run).await["status"],
        "success"
    );
    assert_eq!(runs[0]["metadata"]["cron_id"], cron["cron_id"]);
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(state["values"]["messages"][1]["content"], "good night");
    fire_due(&gateway, moment).await;
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/runs"))
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn cron_without_a_thread_creates_one_per_firing() {
    let gateway = Gateway::new();
    let permanent = gateway
        .post(
            "/runs/crons",
            nightly(json!({ "on_run_completed": "keep" })),
        )
        .await
        .json();
    let temporary = gateway.post("/runs/crons", nightly(json!({}))).await.json();
    fire_due(&gateway, in_two_days()).await;
    let run_of = async |cron: &Value| {
        let id = uuid::Uuid::parse_str(cron["cron_id"].as_str().expect("an id")).expect("a UUID");
        let fired = cron["next_run_date"]
            .as_str()
            .expect("a time")
            .replace("+00:00", "Z");
        gateway
            .runs
            .get_run(None, &uuid::Uuid::new_v5(&id, fired.as_bytes()).into())
            .await
            .expect("read")
    };
    let is_over = async |cron: &Value| {
        run_of(cron)
            .await
            .is_some_and(|run| run.status.is_terminal())
    };
    let ended = async {
        while !(is_over(&permanent).await && is_over(&temporary).await) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .expect("both fire");
    for (cron, stays) in [(&permanent, true), (&temporary, false)] {
        let run = run_of(cron).await.expect("a run");
        let metadata = gateway
            .state
            .thread_services
            .checkpoints
            .get(&run.thread_id, None)
            .await
            .expect("read");
        assert_eq!((run.status.wire(), metadata.is_some()), ("success", stays));
    }
}

#[tokio::test]
async fn cron_continues_after_a_firing_on_a_busy_thread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await;
    let cron = gateway
        .post(
            &format!("/threads/{thread}/runs/crons"),
            nightly(json!({ "multitask_strategy": "reject" })),
        )
        .await
        .json();
    fire_due(&gateway, in_two_days()).await;
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/runs"))
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let after = gateway
        .get(&format!(
            "/runs/crons/{}",
            cron["cron_id"].as_str().expect("an id")
        ))
        .await
        .json();
    assert!(
        after["next_run_date"].as_str() > cron["next_run_date"].as_str(),
        "{after}"
    );
}
