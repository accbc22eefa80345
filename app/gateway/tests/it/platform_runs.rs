//! Runs for the platform's clients: queued, delayed, in batches, cancelled together, streamed over
//! a whole thread.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::{Gateway, saying, saying_with};

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

async fn create(gateway: &Gateway, thread: &str, body: Value) -> Value {
    let made = gateway.post(&format!("/threads/{thread}/runs"), body).await;
    assert_eq!(made.code(), 200, "{}", made.text());
    made.json()
}

async fn status(gateway: &Gateway, run: &Value) -> (u16, Value) {
    let (thread, id) = (
        run["thread_id"].as_str().expect("a thread"),
        run["run_id"].as_str().expect("a run"),
    );
    let found = gateway.get(&format!("/threads/{thread}/runs/{id}")).await;
    (found.code(), found.json()["status"].clone())
}

#[tokio::test]
async fn runs_queue_by_default_and_start_in_order() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let first = create(&gateway, &thread, saying("slow")).await;
    let second = create(&gateway, &thread, saying("say b")).await;
    assert_eq!(
        (&second["status"], &second["multitask_strategy"]),
        (&json!("pending"), &json!("enqueue"))
    );
    let refused = gateway
        .post(
            &format!("/threads/{thread}/runs/stream"),
            saying_with("x", json!({ "multitask_strategy": "reject" })),
        )
        .await;
    assert_eq!(refused.code(), 409);
    // `/api` has no queue: it rejects the second run.
    assert_eq!(
        gateway
            .post(&format!("/api/threads/{thread}/runs"), saying("x"))
            .await
            .code(),
        409
    );
    let cancel = format!(
        "/threads/{thread}/runs/{}/cancel?wait=1",
        first["run_id"].as_str().expect("an id")
    );
    assert_eq!(
        (
            gateway.post(&cancel, json!({})).await.code(),
            gateway.post(&cancel, json!({})).await.code()
        ),
        (200, 404)
    );
    let ended = gateway
        .wait_for_status(&thread, second["run_id"].as_str().expect("an id"))
        .await;
    assert_eq!(ended["status"], "success");
}

#[tokio::test]
async fn full_queue_and_invalid_delays_are_rejected() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    create(&gateway, &thread, saying("slow")).await;
    for _ in 0..16 {
        create(&gateway, &thread, saying("say x")).await;
    }
    assert_eq!(
        gateway
            .post(&format!("/threads/{thread}/runs"), saying("x"))
            .await
            .code(),
        429
    );
    let other = gateway.thread().await;
    for bad in [json!("1"), json!(1e300), Value::Null, json!([1])] {
        let response = gateway
            .post(
                &format!("/threads/{other}/runs"),
                saying_with("x", json!({ "after_seconds": bad })),
            )
            .await;
        assert_eq!(response.code(), 422, "{bad}");
    }
    let late = create(
        &gateway,
        &other,
        saying_with("say late", json!({ "after_seconds": 3600 })),
    )
    .await;
    assert_eq!(late["status"], "pending");
    assert!(
        late["created_at"].as_str() > late["updated_at"].as_str(),
        "{late}"
    );
    let waits = gateway
        .get(&format!("/threads/{other}/runs?status=pending"))
        .await
        .json();
    assert_eq!(waits.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn displaced_and_queued_runs_are_interrupted_or_deleted() {
    let gateway = Gateway::new();
    for (strategy, expected) in [
        ("interrupt", (200, json!("interrupted"))),
        ("rollback", (404, Value::Null)),
    ] {
        let thread = gateway.thread().await;
        let displaced = [
            create(&gateway, &thread, saying("slow")).await,
            create(&gateway, &thread, saying("say b")).await,
        ];
        let body = saying_with("say c", json!({ "multitask_strategy": strategy }));
        let waited = gateway
            .post(&format!("/threads/{thread}/runs/wait"), body)
            .await
            .json();
        assert_eq!(
            waited["messages"]
                .as_array()
                .and_then(|all| all.last())
                .map(|last| &last["content"]),
            Some(&json!("c"))
        );
        for run in &displaced {
            assert_eq!(status(&gateway, run).await, expected, "{strategy}");
        }
    }
}

#[tokio::test]
async fn batch_is_validated_as_a_whole_before_any_run() {
    let gateway = Gateway::new();
    let keep = |text: &str| saying_with(text, json!({ "on_completion": "keep" }));
    let made = gateway
        .post("/runs/batch", json!([keep("say a"), keep("say b")]))
        .await
        .json();
    assert_eq!(made.as_array().map(Vec::len), Some(2), "{made}");
    for run in made.as_array().expect("runs") {
        let mut now = status(&gateway, run).await;
        while now.1 == "pending" || now.1 == "running" {
            tokio::task::yield_now().await;
            now = status(&gateway, run).await;
        }
        assert_eq!(now, (200, json!("success")));
    }
    for bad in [
        json!([]),
        json!({}),
        json!([1]),
        json!([keep("x"), { "input": {} }]),
        json!([keep("x"), { "assistant_id": "nope" }]),
    ] {
        assert_eq!(
            gateway.post("/runs/batch", bad.clone()).await.code(),
            422,
            "{bad}"
        );
    }
    let empty = json!({ "detail": "Invalid JSON in request body: the body is empty" });
    assert_eq!(
        gateway.raw("POST", "/runs/batch", "", &[]).await.json(),
        empty
    );
}

#[tokio::test]
async fn runs_are_cancelled_by_id_by_thread_or_by_status() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let cancel = async |body: Value| gateway.post("/runs/cancel", body).await.code();
    for body in [
        json!({ "thread_id": thread, "run_ids": [GONE] }),
        json!({ "status": "all" }),
        json!({ "thread_id": thread }),
    ] {
        assert_eq!(cancel(body.clone()).await, 404, "{body}");
    }
    for body in [
        json!({}),
        json!({ "status": "bogus" }),
        json!({ "status": "all", "thread_id": thread }),
        json!({ "thread_id": "x" }),
    ] {
        assert_eq!(cancel(body.clone()).await, 422, "{body}");
    }
    assert_eq!(
        cancel(json!({ "thread_id": thread, "run_ids": ["x"] })).await,
        422
    );
    for (which, ended) in [("pending", [false, true]), ("all", [true, true])] {
        let runs = [
            create(&gateway, &thread, saying("slow")).await,
            create(&gateway, &thread, saying("slow")).await,
        ];
        assert_eq!(cancel(json!({ "status": which })).await, 204);
        for (run, ended) in runs.iter().zip(ended).filter(|(_, ended)| *ended) {
            let run = gateway
                .wait_for_status(&thread, run["run_id"].as_str().expect("an id"))
                .await;
            assert_eq!(
                (&run["status"], ended),
                (&json!("interrupted"), true),
                "{which}"
            );
        }
        assert!(which == "all" || cancel(json!({ "status": "all" })).await == 204);
        gateway
            .wait_for_status(&thread, runs[0]["run_id"].as_str().expect("an id"))
            .await;
    }
}

#[tokio::test]
async fn unknown_run_is_reported_in_the_body() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let joined = gateway
        .get(&format!("/threads/{thread}/runs/{GONE}/join"))
        .await;
    assert_eq!(
        joined.json(),
        json!({ "__error__": { "error": "HTTPException", "message": "404: Run not found" } })
    );
    let followed = gateway
        .get(&format!("/threads/{thread}/runs/{GONE}/stream"))
        .await;
    assert_eq!(
        (followed.code(), followed.events()),
        (200, vec!["error", "end"])
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/runs/{GONE}/join"))
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn private_webhook_is_rejected_before_the_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for bad in [
        json!("not a url"),
        json!(""),
        json!("http://127.0.0.1:1/x"),
        json!("http://localhost/x"),
        json!(1),
        Value::Null,
    ] {
        let response = gateway
            .post(
                &format!("/threads/{thread}/runs"),
                saying_with("x", json!({ "webhook": bad })),
            )
            .await;
        assert_eq!(response.code(), 422, "{bad}: {}", response.text());
    }
    assert_eq!(
        gateway.get(&format!("/threads/{thread}/runs")).await.json(),
        json!([])
    );
}

/// Reads an endless stream until `done` runs have ended.
async fn read(body: &mut BodyDataStream, done: usize) -> String {
    let mut text = String::new();
    while text.matches("run_done").count() < done {
        text.push_str(
            std::str::from_utf8(&body.next().await.expect("more").expect("no error"))
                .expect("UTF-8"),
        );
    }
    text
}

fn lines<'a>(text: &'a str, field: &str) -> Vec<&'a str> {
    text.split("\r\n")
        .filter_map(|line| line.strip_prefix(field))
        .collect()
}

#[tokio::test]
async fn thread_stream_resumes_across_runs_from_any_cursor() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/stream");
    let open = async |query: &str, headers: &[(&str, &str)]| {
        let response = gateway
            .open("GET", &format!("{path}{query}"), "", headers)
            .await;
        assert_eq!(response.status(), 200);
        response.into_body().into_data_stream()
    };
    let mut live = open("", &[]).await;
    for word in ["a", "b"] {
        let body = saying_with(&format!("say {word}"), json!({ "stream_mode": ["values"] }));
        assert_eq!(
            gateway
                .post(&format!("/threads/{thread}/runs/wait"), body)
                .await
                .code(),
            200
        );
    }
    let seen = read(&mut live, 2).await;
    assert_eq!(
        lines(&seen, "event: "),
        [
            "metadata", "values", "values", "metadata", "metadata", "values", "values", "metadata"
        ]
    );
    let ids = lines(&seen, "id: ");
    assert_eq!(ids.len(), 8);
    let rest = read(&mut open("", &[("last-event-id", ids[1])]).await, 2).await;
    assert_eq!(lines(&rest, "id: "), ids[2..]);
    let ends = read(
        &mut open("?stream_mode=lifecycle", &[("last-event-id", "-")]).await,
        2,
    )
    .await;
    assert_eq!(lines(&ends, "event: "), ["metadata"; 4]);
    for (query, id) in [
        ("?stream_modes=bogus", None),
        ("?stream_mode=bogus", None),
        ("", Some("-1")),
        ("", Some("x")),
    ] {
        let headers: Vec<_> = id.map(|id| ("last-event-id", id)).into_iter().collect();
        assert_eq!(
            gateway
                .raw("GET", &format!("{path}{query}"), "", &headers)
                .await
                .code(),
            422,
            "{query} {id:?}"
        );
    }
    assert_eq!(
        gateway.get(&format!("/threads/{GONE}/stream")).await.code(),
        404
    );
    gateway.shutdown.cancel();
    assert!(live.next().await.is_some_and(|chunk| chunk.is_err()));
}
