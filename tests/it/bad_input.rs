//! Invalid bodies, paths and queries: each gets a typed error and changes nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{HttpResponse, Rig, body, body_with};

/// Routes of a thread that read a JSON body.
fn json_routes(thread: &str) -> Vec<String> {
    let routes = ["/state", "/history", "/runs", "/runs/stream", "/runs/wait"]
        .map(|route| format!("/threads/{thread}{route}"));
    let mut routes = routes.to_vec();
    routes.extend(["/threads", "/threads/search", "/runs/stream", "/runs/wait"].map(str::to_owned));
    routes
}

/// Returns everything that a client can see of a thread.
async fn thread_snapshot(rig: &Rig, thread: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    for path in ["", "/state", "/runs"] {
        seen.push(rig.get(&format!("/api/threads/{thread}{path}")).await.ok());
    }
    seen.push(rig.post("/api/threads/search", &json!({})).await.ok());
    seen
}

const UUID: &str = "5b0a2b6e-0f04-4a4b-9d0c-3a1f0c6d1e11";

#[tokio::test]
async fn non_json_body_is_rejected_on_every_route() {
    let rig = Rig::start().await;
    rig.post("/api/threads", &json!({"thread_id": UUID}))
        .await
        .ok();
    let before = thread_snapshot(&rig, UUID).await;
    let deep = format!(
        "{{\"metadata\": {{\"a\": {}{}}}}}",
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let bodies: [&[u8]; 7] = [
        b"{",
        b"nonsense",
        b"{\"a\": }",
        b"[]",
        b"5",
        b"\"text\"",
        b"\xff\xfe{}",
    ];
    for prefix in ["/api", "/api/langgraph", ""] {
        for route in json_routes(UUID) {
            for body in bodies.iter().copied().chain([deep.as_bytes()]) {
                let answer = rig
                    .post_bytes(&format!("{prefix}{route}"), body.to_vec())
                    .await;
                let excerpt = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
                assert!(
                    matches!(answer.status.as_u16(), 400 | 422),
                    "{prefix}{route} {excerpt}: {} {}",
                    answer.status,
                    answer.text
                );
                answer.refusal(answer.status.as_u16());
            }
        }
    }
    assert_eq!(thread_snapshot(&rig, UUID).await, before);
}

#[tokio::test]
async fn field_of_wrong_type_is_rejected_with_its_path() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let before = thread_snapshot(&rig, &thread).await;
    for (field, value) in [
        ("input", json!(5)),
        ("input", json!("hello")),
        ("input", json!([1])),
        ("command", json!("resume")),
        ("metadata", json!([])),
        ("config", json!(5)),
        ("context", json!("x")),
        ("assistant_id", json!({})),
        ("stream_mode", json!({"values": true})),
        ("stream_subgraphs", json!("perhaps")),
        ("interrupt_before", json!(7)),
        ("interrupt_after", json!([7])),
        ("checkpoint_id", json!(5)),
        ("checkpoint", json!("x")),
        ("on_disconnect", json!(1)),
        ("multitask_strategy", json!({})),
    ] {
        let answer = rig
            .post(
                &format!("/api/threads/{thread}/runs"),
                &body_with("hi", json!({field: value})),
            )
            .await;
        assert_eq!(answer.status, 422, "{field}: {}", answer.text);
        let detail = answer.refusal(422);
        assert_eq!(
            (&detail[0]["loc"][0], &detail[0]["loc"][1]),
            (&json!("body"), &json!(field)),
            "{detail}"
        );
    }
    assert_eq!(thread_snapshot(&rig, &thread).await, before);
}

#[tokio::test]
async fn id_with_invalid_characters_is_rejected_on_every_route() {
    let rig = Rig::start().await;
    let long = "x".repeat(65);
    for id in ["a%20b", "a.b", "%C3%BC", "a%00b", "a%2Fb", "%ff", &long] {
        for path in ["", "/state", "/runs", "/runs/x", "/runs/x/stream"] {
            let answer = rig.get(&format!("/api/threads/{id}{path}")).await;
            assert!(
                matches!(answer.status.as_u16(), 400 | 404 | 422),
                "{id}{path}: {} {}",
                answer.status,
                answer.text
            );
            answer.refusal(answer.status.as_u16());
        }
        for path in ["/runs", "/runs/stream", "/runs/wait", "/state", "/history"] {
            let answer = rig
                .post(&format!("/api/threads/{id}{path}"), &body("hi"))
                .await;
            assert!(
                matches!(answer.status.as_u16(), 400 | 404 | 422),
                "{id}{path}: {} {}",
                answer.status,
                answer.text
            );
            answer.refusal(answer.status.as_u16());
        }
    }
    assert_eq!(
        rig.post("/api/threads/search", &json!({})).await.ok(),
        json!([])
    );
}

#[tokio::test]
async fn arbitrary_run_id_returns_not_found() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let long = "y".repeat(2000);
    for run in [
        "nobody",
        "a%20b",
        "%2e%2e%2f%2e%2e",
        "%C3%BC",
        "'%20or%201=1--",
        &long,
    ] {
        for path in ["", "/stream", "/join"] {
            rig.get(&format!("/api/threads/{thread}/runs/{run}{path}"))
                .await
                .refusal(404);
        }
        HttpResponse::of(rig.request(
            Method::POST,
            &format!("/api/threads/{thread}/runs/{run}/cancel"),
        ))
        .await
        .refusal(404);
    }
}

#[tokio::test]
async fn body_of_ten_megabytes_is_accepted_and_larger_rejected() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let human = |text: &str| json!({ "role": "user", "content": text });
    let large = "0123456789".repeat(350 * 1024);
    let messages = [human(&large), human(&large), human(&large), human("say x")];
    let input = json!({ "stream_mode": "updates", "input": { "messages": messages } });
    let run = rig.background(&thread, &body_with("", input)).await;
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    let frames = rig
        .join(&thread, &run, Some("-1"))
        .await
        .collect()
        .await
        .expect("whole stream");
    assert_eq!(frames.last().map(|frame| frame.name()), Some("end"));
    let before = rig.get(&format!("/api/threads/{thread}/runs")).await.ok();
    let huge = format!(
        "{{\"metadata\": {{\"a\": \"{}\"}}}}",
        "x".repeat(30 * 1024 * 1024)
    );
    rig.post_bytes(&format!("/api/threads/{thread}/runs"), huge)
        .await
        .refusal(413);
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}/runs")).await.ok(),
        before
    );
    assert_eq!(rig.get("/health").await.status, 200);
}

#[tokio::test]
async fn platform_errors_are_one_sentence() {
    let rig = Rig::start().await;
    let missing = "11111111-1111-4111-8111-111111111111";
    let run = json!({"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "hi"}]}});
    for (answer, status) in [
        (rig.get(&format!("/threads/{missing}")).await, 404),
        (rig.get("/threads/not-a-uuid").await, 422),
        (
            rig.post(&format!("/threads/{missing}/runs"), &run).await,
            404,
        ),
        (rig.post("/runs/wait", &json!({"input": {}})).await, 422),
        (
            rig.post(
                "/runs/wait",
                &json!({"assistant_id": "no-such-graph", "input": {}}),
            )
            .await,
            422,
        ),
        (
            rig.post("/runs/wait", &json!({"assistant_id": missing, "input": {}}))
                .await,
            404,
        ),
        (
            rig.post("/threads/search", &json!({"limit": -5})).await,
            422,
        ),
    ] {
        assert!(answer.refusal(status).is_string(), "{}", answer.text);
    }
}

#[tokio::test]
async fn unusual_text_round_trips_unchanged() {
    let rig = Rig::start().await;
    let unusual = "nul \u{0} cr \r\n line \u{2028} mark \u{feff} right \u{202e} deer \u{1f98c} high \u{10ffff} then say \u{1f98c}x";
    let run = rig.run_prompt(unusual).await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    let actual = rig.visible_messages(&run.thread).await;
    assert_eq!(
        (actual[0].1.as_str(), actual[1].1.as_str()),
        (unusual, "\u{1f98c}x")
    );
    let page = rig
        .get(&format!("/api/threads/{}/messages/page", run.thread))
        .await
        .ok();
    assert_eq!(page["data"][0]["content"]["content"][0]["text"], unusual);
    let half = r#"{"input": {"messages": [{"role": "user", "content": "\ud800"}]}}"#;
    let answer = rig
        .post_bytes(&format!("/api/threads/{}/runs", run.thread), half)
        .await;
    answer.refusal(answer.status.as_u16());
    assert!(answer.status.is_client_error(), "{}", answer.status);
}
