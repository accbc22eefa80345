//! Requests that are sent again under a name.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Answer, Gateway, saying, saying_with};

const NAME: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";

async fn named(gateway: &Gateway, path: &str, name: &str, body: &Value) -> Answer {
    gateway
        .raw("POST", path, body.to_string(), &[(NAME, name)])
        .await
}

async fn runs_of(gateway: &Gateway, thread: &str) -> usize {
    gateway
        .get(&format!("/threads/{thread}/runs?limit=100"))
        .await
        .json()
        .as_array()
        .expect("a list")
        .len()
}

fn run_of(answer: &Answer) -> String {
    answer
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned()
}

#[tokio::test]
async fn a_run_that_is_asked_for_again_is_the_same_run_on_every_route() {
    let gateway = Gateway::new();
    for prefix in ["", "/api"] {
        let thread = gateway.thread().await;
        for route in ["", "/stream", "/wait"] {
            let path = format!("{prefix}/threads/{thread}/runs{route}");
            let first = named(&gateway, &path, "k", &saying("say x")).await;
            assert_eq!(
                (first.code(), first.header(REPLAYED)),
                (200, ""),
                "{path}: {}",
                first.text()
            );
            gateway.settled(&thread, &run_of(&first)).await;
            // The order of fields means nothing.
            let body = r#"{"input": {"messages": [{"content": "say x", "type": "human"}]}, "assistant_id": "lead_agent"}"#;
            let again = gateway.raw("POST", &path, body, &[(NAME, "k")]).await;
            assert_eq!(
                (again.code(), again.header(REPLAYED)),
                (200, "true"),
                "{path}: {}",
                again.text()
            );
            assert_eq!(
                again.header("content-location"),
                first.header("content-location")
            );
            assert_eq!(again.header("location"), first.header("location"));
            match route {
                "" => assert_eq!(again.json()["run_id"], first.json()["run_id"]),
                "/stream" => assert_eq!(again.frames(), first.frames()),
                _ => assert_eq!(again.json()["messages"], first.json()["messages"]),
            }
            let other = named(&gateway, &path, "k", &saying("say y")).await;
            assert_eq!(other.code(), 422, "{path}: {}", other.text());
            assert!(
                other.json()["detail"]
                    .as_str()
                    .is_some_and(|text| text.contains("another request")),
                "{}",
                other.text()
            );
        }
        assert_eq!(runs_of(&gateway, &thread).await, 3, "{prefix}");
    }
}

#[tokio::test]
async fn runs_without_a_thread_and_batches_are_made_once() {
    let gateway = Gateway::new();
    let keep = saying_with("say x", json!({ "on_completion": "keep" }));
    for path in [
        "/runs",
        "/runs/stream",
        "/runs/wait",
        "/api/runs",
        "/api/runs/stream",
        "/api/runs/wait",
    ] {
        let first = named(&gateway, path, "k", &keep_for(path, &keep)).await;
        let again = named(&gateway, path, "k", &keep_for(path, &keep)).await;
        assert_eq!(
            (first.code(), again.code(), again.header(REPLAYED)),
            (200, 200, "true"),
            "{path}: {}",
            again.text()
        );
        assert_eq!(
            first.header("content-location"),
            again.header("content-location"),
            "{path}"
        );
    }
    let ids = |answer: &Answer| -> Vec<Value> {
        answer
            .json()
            .as_array()
            .expect("runs")
            .iter()
            .map(|run| run["run_id"].clone())
            .collect()
    };
    let short = json!([keep, keep]);
    let first = named(&gateway, "/runs/batch", "b", &short).await;
    let again = named(&gateway, "/runs/batch", "b", &short).await;
    assert_eq!((ids(&first).len(), ids(&first)), (2, ids(&again)));
    assert_eq!(
        (first.header(REPLAYED), again.header(REPLAYED)),
        ("", "true")
    );
    assert_eq!(
        named(&gateway, "/runs/batch", "b", &json!([keep, keep, keep]))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn a_wait_is_answered_as_it_was_first_when_the_thread_of_its_run_is_gone() {
    let gateway = Gateway::new();
    for said in ["say x", "fail x"] {
        let first = named(
            &gateway,
            "/runs/wait",
            said.split(' ').next().unwrap(),
            &saying(said),
        )
        .await;
        let again = named(
            &gateway,
            "/runs/wait",
            said.split(' ').next().unwrap(),
            &saying(said),
        )
        .await;
        assert_eq!(
            (again.code(), again.header(REPLAYED)),
            (200, "true"),
            "{said}: {}",
            again.text()
        );
        assert_eq!(first.json(), again.json());
        let thread = first
            .header("content-location")
            .split('/')
            .nth(2)
            .expect("an id")
            .to_owned();
        assert_eq!(
            gateway.get(&format!("/threads/{thread}")).await.code(),
            404,
            "{said}"
        );
    }
    let answer = named(&gateway, "/runs/wait", "say", &saying("say x"))
        .await
        .json();
    assert_eq!(answer["messages"][1]["content"], "x", "{answer}");
}

/// DeerFlow's routes do not know the option.
fn keep_for(path: &str, keep: &Value) -> Value {
    if path.starts_with("/api") {
        saying("say x")
    } else {
        keep.clone()
    }
}

#[tokio::test]
async fn twins_at_the_same_time_make_one_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let body = saying("say x");
    let answers = join_all((0..12).map(|_| named(&gateway, &path, "k", &body))).await;
    let first = answers[0].json()["run_id"].clone();
    assert!(
        answers
            .iter()
            .all(|answer| answer.code() == 200 && answer.json()["run_id"] == first)
    );
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.header(REPLAYED) == "true")
            .count(),
        11
    );
    assert_eq!(runs_of(&gateway, &thread).await, 1);
}

#[tokio::test]
async fn a_stream_that_broke_is_joined_from_its_start() {
    let gateway = Gateway::new();
    for prefix in ["", "/api"] {
        let thread = gateway.thread().await;
        let path = format!("{prefix}/threads/{thread}/runs/stream");
        let first = gateway
            .open("POST", &path, saying("slow").to_string(), &[(NAME, "k")])
            .await;
        let location = first.headers()["content-location"]
            .to_str()
            .expect("text")
            .to_owned();
        let run = location.rsplit('/').next().expect("an id").to_owned();
        let mut events: BodyDataStream = first.into_body().into_data_stream();
        let beginning = events.next().await.expect("events").expect("bytes");
        // The reader goes; its run does not, whatever the dialect does with requests that nobody can send again.
        drop(events);
        let again = gateway
            .open("POST", &path, saying("slow").to_string(), &[(NAME, "k")])
            .await;
        assert_eq!(again.headers()[REPLAYED], "true");
        assert_eq!(
            again.headers()["content-location"].to_str().expect("text"),
            location
        );
        let replayed = again
            .into_body()
            .into_data_stream()
            .next()
            .await
            .expect("events")
            .expect("bytes");
        assert!(replayed.starts_with(&beginning), "{replayed:?}");
        let status = gateway
            .get(&format!("/threads/{thread}/runs/{run}"))
            .await
            .json()["status"]
            .clone();
        assert_eq!(status, "running", "{prefix}");
        assert_eq!(
            gateway
                .post(
                    &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
                    json!({})
                )
                .await
                .code(),
            200
        );
    }
}

#[tokio::test]
async fn a_thread_that_is_asked_for_again_is_the_same_thread() {
    let gateway = Gateway::new();
    for path in ["/threads", "/api/threads"] {
        let body = json!({ "metadata": { "a": 1 } });
        let first = named(&gateway, path, "k", &body).await;
        let again = named(&gateway, path, "k", &body).await;
        assert_eq!(
            (first.code(), again.code(), again.header(REPLAYED)),
            (200, 200, "true"),
            "{path}"
        );
        assert_eq!(first.json(), again.json());
        assert_eq!(
            named(&gateway, path, "k", &json!({ "metadata": { "a": 2 } }))
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
        // What it made is gone; it is not made anew behind the back of who deleted it.
        assert_eq!(named(&gateway, path, "k", &body).await.code(), 404);
    }
}

#[tokio::test]
async fn a_cron_that_is_asked_for_again_is_the_same_cron() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for path in [
        "/runs/crons".to_owned(),
        format!("/threads/{thread}/runs/crons"),
    ] {
        let body = saying_with("say x", json!({ "schedule": "0 3 * * *" }));
        let twins = join_all((0..4).map(|_| named(&gateway, &path, "k", &body))).await;
        let first = twins[0].json()["cron_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert!(
            twins
                .iter()
                .all(|twin| twin.code() == 200 && twin.json()["cron_id"] == first.as_str()),
            "{}",
            twins[1].text()
        );
        assert_eq!(
            twins
                .iter()
                .filter(|twin| twin.header(REPLAYED) != "true")
                .count(),
            1
        );
        let other = saying_with("say x", json!({ "schedule": "0 4 * * *" }));
        assert_eq!(named(&gateway, &path, "k", &other).await.code(), 422);
        // It is shown as it is now, and not made anew when it is gone.
        gateway
            .send(
                "PATCH",
                &format!("/runs/crons/{first}"),
                Some(json!({ "enabled": false })),
            )
            .await;
        assert_eq!(
            named(&gateway, &path, "k", &body).await.json()["enabled"],
            false
        );
        assert_eq!(
            gateway
                .send("DELETE", &format!("/runs/crons/{first}"), None)
                .await
                .code(),
            204
        );
        assert_eq!(named(&gateway, &path, "k", &body).await.code(), 404);
    }
    assert_eq!(gateway.post("/runs/crons/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn a_request_that_was_refused_may_be_sent_again() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let slow = named(&gateway, &path, "slow", &saying("slow")).await.json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let rejects = saying_with("say x", json!({ "multitask_strategy": "reject" }));
    assert_eq!(named(&gateway, &path, "k", &rejects).await.code(), 409);
    assert_eq!(
        gateway
            .post(&format!("{path}/{slow}/cancel?wait=1"), json!({}))
            .await
            .code(),
        200
    );
    let made = named(&gateway, &path, "k", &rejects).await;
    assert_eq!((made.code(), made.header(REPLAYED)), (200, ""));
    // A thread whose seed is refused leaves its key free, too.
    let bad = json!({ "supersteps": [{ "updates": [{ "values": { "messages": [{ "type": "nonsense" }] }, "as_node": "__input__" }] }] });
    let refused = named(&gateway, "/threads", "seed", &bad).await.code();
    assert!((400..500).contains(&refused), "{refused}");
    assert_eq!(
        named(&gateway, "/threads", "seed", &bad).await.code(),
        refused
    );
    assert_eq!(
        named(&gateway, "/threads", "seed", &json!({})).await.code(),
        200
    );
}

#[tokio::test]
async fn a_thread_with_a_seed_is_made_once_and_seeded_when_its_key_is_known() {
    let gateway = Gateway::new();
    let message = json!({ "type": "human", "content": "hello" });
    let steps =
        json!([{ "updates": [{ "values": { "messages": [message] }, "as_node": "__input__" }] }]);
    let body = json!({ "metadata": { "graph_id": "lead_agent" }, "supersteps": steps });
    let twins = join_all((0..4).map(|_| named(&gateway, "/threads", "seed", &body))).await;
    let first = twins[0].json()["thread_id"].clone();
    for twin in &twins {
        assert_eq!((twin.code(), &twin.json()["thread_id"]), (200, &first));
        assert_eq!(
            twin.json()["values"]["messages"][0]["content"],
            "hello",
            "{}",
            twin.text()
        );
    }
    assert_eq!(
        twins
            .iter()
            .filter(|twin| twin.header(REPLAYED) != "true")
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
async fn names_are_of_one_user_on_one_route_and_hostile_ones_are_refused() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let long = "x".repeat(256);
    for bad in ["", " ", "a b", "a\tb", "\u{e9}", long.as_str()] {
        for path in [path.as_str(), "/threads", "/runs/batch"] {
            let answer = named(&gateway, path, bad, &saying("say x")).await;
            assert_eq!(answer.code(), 422, "{bad:?}: {}", answer.text());
            assert!(
                answer.json()["detail"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("Idempotency-Key")),
                "{}",
                answer.text()
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
    // The same key on another thread is another request.
    let other = gateway.thread().await;
    assert_eq!(
        named(&gateway, &path, "k", &saying("say x")).await.code(),
        200
    );
    assert_eq!(
        named(
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
        named(
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

#[tokio::test]
async fn an_upload_that_comes_again_is_answered_as_before() {
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
