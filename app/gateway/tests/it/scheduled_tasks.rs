//! Scheduled tasks over HTTP.

mod firings;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::scheduled_tasks::{TaskFirings, TaskScheduler};
use deerflow_gateway::background::TaskRuns;
use harness::clock::{Clock, ManualClock, SystemClock};
use harness::ids::SystemIds;
use serde_json::{Value, json};

use crate::keys::User;
use crate::support::Gateway;

const ALL: &str = "/api/scheduled-tasks";

fn nightly(more: Value) -> Value {
    let mut body = json!({
        "title": "Report", "prompt": "say good night", "schedule_type": "cron",
        "schedule_spec": { "cron": "0 3 * * *" }, "timezone": "Asia/Tokyo",
    });
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

fn in_two_days() -> DateTime<Utc> {
    SystemClock.now() + TimeDelta::days(2)
}

/// Creates a task and returns its path.
async fn created(gateway: &Gateway, body: Value) -> String {
    let response = gateway.post(ALL, body).await;
    let id = response.json()["id"].as_str().map(str::to_owned);
    format!(
        "{ALL}/{}",
        id.unwrap_or_else(|| panic!("{}", response.text()))
    )
}

/// Follows active runs, and fires all tasks that are due at `moment`, with an enabled scheduler.
async fn poll(gateway: &Gateway, moment: DateTime<Utc>) {
    let firings = TaskFirings::new(
        gateway.state.schedules.tasks.clone(),
        Arc::new(TaskRuns::new(gateway.state.clone())),
        Arc::new(ManualClock::starting_at(moment)),
        Arc::new(SystemIds::default()),
    );
    let scheduler = TaskScheduler::new(firings, true, Duration::from_secs(1));
    scheduler.poll().await.expect("a poll");
}

async fn runs(gateway: &Gateway, path: &str) -> Vec<Value> {
    let runs = gateway.get(&format!("{path}/runs")).await.json();
    runs.as_array().cloned().expect("a list")
}

fn is_id(value: &Value, prefix: &str) -> bool {
    let digits = value.as_str().and_then(|id| id.strip_prefix(prefix));
    digits.is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[tokio::test]
async fn task_is_created_read_updated_and_deleted() {
    let gateway = Gateway::new();
    assert_eq!(gateway.get(ALL).await.json(), json!([]));
    let task = gateway.post(ALL, nightly(json!({}))).await.json();
    let fields: Vec<&String> = task.as_object().expect("a task").keys().collect();
    let expected = "id user_id thread_id context_mode assistant_id title prompt schedule_type schedule_spec timezone status \
                    overlap_policy next_run_at last_run_at last_run_id last_thread_id last_error lease_owner lease_expires_at run_count \
                    created_at updated_at";
    assert_eq!(fields, expected.split_whitespace().collect::<Vec<_>>());
    assert!(is_id(&task["id"], "task-"), "{task}");
    assert_eq!(
        (
            &task["context_mode"],
            &task["status"],
            &task["schedule_spec"]
        ),
        (
            &json!("fresh_thread_per_run"),
            &json!("enabled"),
            &json!({ "cron": "0 3 * * *" })
        )
    );
    let next = task["next_run_at"].as_str().expect("a time");
    assert!(next.ends_with("T18:00:00.000000+00:00"), "{task}");
    let path = format!("{ALL}/{}", task["id"].as_str().expect("an id"));
    assert_eq!(gateway.get(&path).await.json(), task);
    assert_eq!(gateway.get(ALL).await.json(), json!([task]));

    let patch =
        json!({ "title": "Daily", "schedule_spec": { "cron": "0 4 * * *" }, "timezone": "UTC" });
    let changed = gateway.send("PATCH", &path, Some(patch)).await.json();
    let next = changed["next_run_at"].as_str().expect("a time");
    assert!(next.ends_with("T04:00:00.000000+00:00"), "{changed}");
    assert_eq!(changed["title"], "Daily");
    let paused = gateway
        .post(&format!("{path}/pause"), json!({}))
        .await
        .json();
    assert_eq!(
        (&paused["status"], &paused["next_run_at"]),
        (&json!("paused"), &Value::Null)
    );
    poll(&gateway, in_two_days()).await;
    assert_eq!(runs(&gateway, &path).await, Vec::<Value>::new());
    let resumed = gateway
        .post(&format!("{path}/resume"), json!({}))
        .await
        .json();
    assert_eq!(
        (&resumed["status"], &resumed["next_run_at"]),
        (&json!("enabled"), &changed["next_run_at"])
    );
    let deleted = gateway.send("DELETE", &path, None).await;
    assert_eq!(
        (deleted.code(), deleted.json()),
        (200, json!({ "id": task["id"], "deleted": true }))
    );
    for (method, path) in [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/trigger")),
        ("POST", format!("{path}/pause")),
        ("GET", format!("{path}/runs")),
    ] {
        let gone = gateway.send(method, &path, None).await;
        assert_eq!(
            (gone.code(), gone.json()),
            (404, json!({ "detail": "Scheduled task not found" })),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn invalid_task_is_rejected_with_a_reason() {
    let gateway = Gateway::new();
    let soon = SystemClock.now() + TimeDelta::seconds(30);
    let once = |at: &str| json!({ "schedule_type": "once", "schedule_spec": { "run_at": at } });
    for (change, detail) in [
        (json!({ "context_mode": "x" }), "Unsupported context_mode"),
        (
            json!({ "context_mode": "reuse_thread" }),
            "reuse_thread requires thread_id",
        ),
        (
            json!({ "schedule_type": "interval" }),
            "Unsupported schedule_type",
        ),
        (
            json!({ "schedule_spec": { "cron": "* * *" } }),
            "Cron expression must contain exactly 5 fields",
        ),
        (
            json!({ "schedule_spec": {} }),
            "cron schedule requires cron",
        ),
        (
            json!({ "timezone": "Mars/Base" }),
            "Unknown timezone: Mars/Base",
        ),
        (
            once("2020-01-01T00:00:00Z"),
            "once schedule must be in the future",
        ),
        (
            once(&soon.to_rfc3339()),
            "once schedule must be at least 60 seconds in the future",
        ),
        (
            once("soon"),
            "Invalid run_at: soon. Use an ISO 8601 date-time.",
        ),
        (
            json!({ "title": "" }),
            "title must have 1 to 200 characters",
        ),
        (
            json!({ "title": "x".repeat(201) }),
            "title must have 1 to 200 characters",
        ),
        (
            json!({ "prompt": "ü".repeat(20_001) }),
            "prompt must have 1 to 20000 characters",
        ),
    ] {
        let response = gateway.post(ALL, nightly(change.clone())).await;
        assert_eq!(
            (response.code(), response.json()),
            (422, json!({ "detail": detail })),
            "{change}"
        );
    }
    for (change, field) in [
        (json!({ "title": null }), "title"),
        (json!({ "schedule_spec": "x" }), "schedule_spec"),
    ] {
        let response = gateway.post(ALL, nightly(change)).await;
        let loc = &response.json()["detail"][0]["loc"];
        assert_eq!((response.code(), loc), (422, &json!(["body", field])));
    }
    let unknown = json!({
        "context_mode": "reuse_thread", "thread_id": "2bd06ce7-e763-4b9c-af17-60e5565443f1",
    });
    let response = gateway.post(ALL, nightly(unknown)).await;
    assert_eq!(
        (response.code(), response.json()),
        (404, json!({ "detail": "Thread not found" }))
    );
    assert_eq!(gateway.get(ALL).await.json(), json!([]));
    let longest = json!({ "title": "ü".repeat(200), "prompt": "ü".repeat(20_000) });
    let path = created(&gateway, nightly(longest)).await;
    for patch in [
        json!({ "title": "x".repeat(201) }),
        json!({ "schedule_spec": { "cron": "x" } }),
        json!({ "timezone": "Mars/Base" }),
        json!({ "context_mode": "reuse_thread" }),
    ] {
        let response = gateway.send("PATCH", &path, Some(patch)).await;
        assert_eq!(response.code(), 422, "{}", response.text());
    }
}

#[tokio::test]
async fn tasks_of_a_user_are_limited() {
    let gateway = Gateway::new();
    for _ in 0..200 {
        created(&gateway, nightly(json!({}))).await;
    }
    let refused = gateway.post(ALL, nightly(json!({}))).await;
    assert_eq!(refused.code(), 422, "{}", refused.text());
    let other = User::new(&gateway, "bob").await;
    let response = other.send("POST", ALL, nightly(json!({}))).await;
    assert_eq!(response.code(), 200, "{}", response.text());
}

#[tokio::test]
async fn tasks_of_another_user_are_hidden() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let thread = ann.send("POST", "/api/threads", json!({})).await.json();
    let thread = thread["thread_id"].as_str().expect("an id").to_owned();
    let on_thread = json!({ "context_mode": "reuse_thread", "thread_id": thread });
    let task = ann
        .send("POST", ALL, nightly(on_thread.clone()))
        .await
        .json();
    let path = format!("{ALL}/{}", task["id"].as_str().expect("an id"));
    let listed = bob.send("GET", ALL, Value::Null).await;
    assert_eq!(listed.json(), json!([]));
    for (method, path, body) in [
        ("GET", path.clone(), Value::Null),
        ("PATCH", path.clone(), json!({ "title": "x" })),
        ("DELETE", path.clone(), Value::Null),
        ("POST", format!("{path}/pause"), Value::Null),
        ("POST", format!("{path}/resume"), Value::Null),
        ("POST", format!("{path}/trigger"), Value::Null),
        ("GET", format!("{path}/runs"), Value::Null),
        (
            "GET",
            format!("/api/threads/{thread}/scheduled-tasks"),
            Value::Null,
        ),
        ("POST", ALL.to_owned(), nightly(on_thread)),
    ] {
        let response = bob.send(method, &path, body).await;
        assert_eq!(response.code(), 404, "{method} {path}: {}", response.text());
    }
    let kept = ann.send("GET", ALL, Value::Null).await.json();
    assert_eq!(kept, json!([task]));
}
