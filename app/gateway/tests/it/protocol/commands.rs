//! Commands of the streaming protocol: their answers and their effects.

use serde_json::{Value, json};

use super::{asking, command, fresh, open, read, root, start};
use crate::keys::User;
use crate::support::{Gateway, saying};

#[tokio::test]
async fn start_creates_an_ordinary_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = start(&gateway, &thread, "say hi").await;
    let ended = gateway.wait_for_status(&thread, &run).await;
    assert_eq!(ended["status"], "success");
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(
        (runs[0]["run_id"].as_str(), runs[1].is_null()),
        (Some(run.as_str()), true)
    );
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(state["values"]["messages"][1]["content"], "hi");
}

#[tokio::test]
async fn body_without_a_command_is_a_bad_request() {
    let gateway = Gateway::new();
    let path = format!("/threads/{}/commands", fresh());
    for (body, id) in [
        ("[]", Value::Null),
        ("\"text\"", Value::Null),
        ("{}", Value::Null),
        ("{\"id\":1}", json!(1)),
        ("{\"id\":true,\"method\":\"run.start\"}", json!(true)),
        ("{\"id\":1.5,\"method\":\"run.start\"}", json!(1.5)),
        ("{\"id\":\"1\",\"method\":\"run.start\"}", json!("1")),
    ] {
        let refused = gateway.raw("POST", &path, body, &[]).await;
        assert_eq!(refused.code(), 400, "{body}");
        let refused = refused.json();
        assert_eq!(
            (&refused["error"], &refused["id"]),
            (&json!("invalid_argument"), &id)
        );
    }
    for body in ["", "zzz", "{\"id\":"] {
        let refused = gateway.raw("POST", &path, body, &[]).await;
        assert_eq!(refused.code(), 400, "{body}");
        assert!(refused.json()["detail"].is_string());
    }
    let huge = format!(
        "{{\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(21 * 1024 * 1024)
    );
    assert_eq!(gateway.raw("POST", &path, huge, &[]).await.code(), 413);
}

#[tokio::test]
async fn refused_command_is_answered_with_200_and_creates_nothing() {
    let gateway = Gateway::new();
    let with = |field: &str, value: Value| {
        let mut params = asking("say hi");
        params[field] = value;
        params
    };
    let checkpoint = |id: Value| with("config", json!({ "configurable": { "checkpoint_id": id } }));
    for (method, params, code) in [
        ("no.such", json!({}), "unknown_command"),
        ("state.get", json!({}), "unknown_command"),
        (
            "subscription.subscribe",
            json!({ "channels": ["values"] }),
            "invalid_argument",
        ),
        ("run.start", json!([]), "invalid_argument"),
        ("run.start", json!(5), "invalid_argument"),
        ("run.start", json!({}), "invalid_argument"),
        (
            "run.start",
            with("assistant_id", json!("")),
            "invalid_argument",
        ),
        (
            "run.start",
            with("assistant_id", json!(5)),
            "invalid_argument",
        ),
        (
            "run.start",
            with("assistant_id", json!("no-such")),
            "unknown_error",
        ),
        ("run.start", with("config", json!(5)), "invalid_argument"),
        (
            "run.start",
            with("config", json!({ "tags": 5 })),
            "unknown_error",
        ),
        ("run.start", with("metadata", json!([])), "invalid_argument"),
        ("run.start", with("input", json!("text")), "unknown_error"),
        ("run.start", checkpoint(json!("")), "invalid_argument"),
        ("run.start", checkpoint(json!("x")), "invalid_argument"),
        (
            "input.respond",
            json!({ "interrupt_id": 5 }),
            "invalid_argument",
        ),
        (
            "input.respond",
            json!({ "interrupt_id": "q", "response": 1 }),
            "no_such_run",
        ),
    ] {
        let thread = fresh();
        let answer = command(&gateway, &thread, method, params.clone()).await;
        assert_eq!(answer.code(), 200, "{method} {params}");
        let answer = answer.json();
        assert_eq!(answer["error"], code, "{method} {params}: {answer}");
        assert_eq!(
            (&answer["type"], &answer["id"]),
            (&json!("error"), &json!(3))
        );
        assert!(!answer["message"].as_str().expect("a text").is_empty());
        let found = gateway.get(&format!("/threads/{thread}")).await;
        assert_eq!(found.code(), 404, "{method} {params}");
    }
}

#[tokio::test]
async fn answer_to_unknown_question_starts_no_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = start(&gateway, &thread, "say hi").await;
    gateway.wait_for_status(&thread, &run).await;
    let params = json!({ "interrupt_id": "nope", "response": "x" });
    let answer = command(&gateway, &thread, "input.respond", params).await;
    assert_eq!(answer.json()["error"], "no_such_interrupt");
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn run_on_busy_thread_follows_its_strategy_at_once() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let slow = start(&gateway, &thread, "slow").await;
    let reject = |key: &str| {
        let mut params = asking("say hi");
        params[key] = json!("reject");
        params
    };
    for key in ["multitaskStrategy", "multitask_strategy"] {
        let answer = command(&gateway, &thread, "run.start", reject(key))
            .await
            .json();
        assert_eq!(answer["error"], "unknown_error");
        assert!(
            answer["message"]
                .as_str()
                .expect("a text")
                .starts_with("409: "),
            "{answer}"
        );
    }
    let mut params = asking("say next");
    params["multitaskStrategy"] = json!("interrupt");
    let answer = command(&gateway, &thread, "run.start", params).await.json();
    assert_eq!(answer["type"], "success", "{answer}");
    assert_eq!(
        gateway.wait_for_status(&thread, &slow).await["status"],
        "interrupted"
    );
    let events = read(open(&gateway, &thread, json!({})).await, 2).await;
    assert_eq!(
        root(&events),
        ["running", "interrupted", "running", "completed"]
    );
}

#[tokio::test]
async fn thread_of_other_user_is_hidden() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let created = ann.send("POST", "/threads", json!({})).await.json();
    let thread = created["thread_id"].as_str().expect("an id");
    let body = json!({ "id": 1, "method": "run.start", "params": asking("say hi") });
    let path = format!("/threads/{thread}/commands");
    let started = ann.send("POST", &path, body.clone()).await.json();
    assert_eq!(started["type"], "success", "{started}");
    let refused = bob.send("POST", &path, body).await.json();
    assert_eq!(refused["error"], "unknown_error");
    assert!(
        refused["message"]
            .as_str()
            .expect("a text")
            .starts_with("404: "),
        "{refused}"
    );
    let events = format!("/threads/{thread}/stream/events");
    let refused = bob
        .send("POST", &events, json!({ "channels": ["values"] }))
        .await;
    assert_eq!(refused.code(), 404);
    let runs = ann
        .send("GET", &format!("/threads/{thread}/runs"), Value::Null)
        .await;
    assert_eq!(runs.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn invalid_thread_id_is_refused_as_on_other_routes() {
    let gateway = Gateway::new();
    let channels = json!({ "channels": ["values"] });
    let stream = gateway
        .post("/threads/no-uuid/stream/events", channels)
        .await;
    assert_eq!(stream.code(), 422);
    let body = json!({ "id": 1, "method": "run.start", "params": {} });
    assert_eq!(
        gateway.post("/threads/no-uuid/commands", body).await.code(),
        422
    );
    let classic = gateway.post("/threads/no-uuid/runs", saying("x")).await;
    assert_eq!(classic.code(), 422);
}
