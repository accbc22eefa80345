//! The same runs under the root path, as clients of the LangGraph platform expect them.

use deerflow_tests::sse::SseStream;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{HttpResponse, Rig, body_with, events, messages_of, text, visible_messages};

fn body(prompt: &str) -> Value {
    json!({
        "assistant_id": "lead_agent",
        "input": {"messages": [{"role": "user", "content": prompt}]},
        "stream_mode": ["values", "messages-tuple"],
        "stream_resumable": true,
    })
}

async fn thread(rig: &Rig) -> String {
    text(&rig.post("/threads", &json!({})).await.ok()["thread_id"]).to_owned()
}

async fn stream(rig: &Rig, thread: &str, prompt: &str) -> SseStream {
    let request = rig
        .request(Method::POST, &format!("/threads/{thread}/runs/stream"))
        .json(&body(prompt));
    events(request.send().await.expect("answer")).await
}

#[tokio::test]
async fn lines_end_with_crlf_and_locations_have_no_prefix() {
    let rig = Rig::start().await;
    let thread = thread(&rig).await;
    let stream = stream(&rig, &thread, "then say x").await;
    let headers = stream.response().headers().clone();
    let location = headers["content-location"].to_str().expect("text");
    let run = location
        .strip_prefix(&format!("/threads/{thread}/runs/"))
        .expect("a run's address");
    assert_eq!(
        headers["location"],
        format!("/threads/{thread}/runs/{run}/stream")
    );
    assert_eq!(headers["cache-control"], "no-store, no-transform");
    let frames = stream.collect().await.expect("whole stream");
    for frame in &frames {
        let (event, data) = (frame.name(), frame.data.as_deref().expect("data"));
        let id = frame
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!("id: {id}\r\n"));
        assert_eq!(
            frame.raw,
            format!("event: {event}\r\ndata: {data}\r\n{id}\r\n")
        );
    }
    assert_eq!(frames[0].name(), "metadata");
    assert!(
        frames
            .iter()
            .all(|frame| frame.name() != "messages"
                || frame.json().expect("json")[0]["type"] != "human"),
        "no echo"
    );
}

#[tokio::test]
async fn join_without_cursor_replays_nothing() {
    let rig = Rig::start().await;
    let thread = thread(&rig).await;
    let whole = stream(&rig, &thread, "then say x").await;
    let location = whole.response().headers()["content-location"]
        .to_str()
        .expect("text")
        .to_owned();
    let whole = whole.collect().await.expect("whole stream");
    let join = async |cursor: Option<&str>| {
        let mut request = rig.request(Method::GET, &format!("{location}/stream"));
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        let frames = events(request.send().await.expect("answer"))
            .await
            .collect()
            .await
            .expect("whole stream");
        frames
            .into_iter()
            .filter(|frame| frame.name() != "end")
            .map(|frame| frame.raw)
            .collect::<Vec<_>>()
    };
    let raw: Vec<_> = whole
        .into_iter()
        .filter(|frame| frame.name() != "end")
        .map(|frame| frame.raw)
        .collect();
    assert!(join(None).await.is_empty());
    assert_eq!(join(Some("-1")).await, raw);
}

#[tokio::test]
async fn wait_response_is_json_from_first_to_last_byte() {
    let rig = Rig::start().await;
    let thread = thread(&rig).await;
    let answer = rig
        .post(
            &format!("/threads/{thread}/runs/wait"),
            &body("[[delay 6000]] then say x"),
        )
        .await;
    assert!(
        answer.text.starts_with('\n'),
        "a keep-alive byte during the wait: {:?}",
        &answer.text[..20]
    );
    assert_eq!(
        visible_messages(&answer.ok()),
        messages_of(&[("human", "[[delay 6000]] then say x"), ("ai", "x")])
    );
}

#[tokio::test]
async fn temporary_thread_is_deleted_with_its_run() {
    let rig = Rig::start().await;
    let answer = rig.post("/runs/wait", &body("then say x")).await;
    assert_eq!(visible_messages(&answer.ok()).len(), 2);
    let location = answer.headers["content-location"]
        .to_str()
        .expect("text")
        .to_owned();
    let (thread, _) = location
        .strip_prefix("/threads/")
        .and_then(|rest| rest.split_once('/'))
        .expect("a thread");
    rig.get(&format!("/threads/{thread}")).await.refusal(404);
    assert_eq!(
        rig.post("/threads/search", &json!({})).await.ok(),
        json!([])
    );
}

#[tokio::test]
async fn rejected_stream_request_returns_plain_json() {
    let rig = Rig::start().await;
    let thread = thread(&rig).await;
    stream(&rig, &thread, "[[slow 1000x10ms]]")
        .await
        .next_named("metadata")
        .await
        .expect("frame");
    let mut busy = body("hi");
    busy["multitask_strategy"] = json!("reject");
    let refused = HttpResponse::of(
        rig.request(Method::POST, &format!("/threads/{thread}/runs/stream"))
            .json(&busy),
    )
    .await;
    assert!(refused.refusal(409).is_string());
}

#[tokio::test]
async fn implicit_thread_gets_configured_ttl_except_in_deerflow() {
    let rig =
        Rig::with("checkpointer:\n  ttl:\n    strategy: keep_latest\n    default_ttl: 90\n").await;
    let ttl = async |thread: &str| {
        rig.get(&format!("/threads/{thread}?include=ttl"))
            .await
            .ok()["ttl"]
            .clone()
    };
    let implicit = "9c909fe5-1423-4566-9403-37f8a945b29b";
    let mut request = body("then say x");
    request["on_completion"] = json!("keep");
    let stored = rig.post("/runs", &request).await.ok();
    request["if_not_exists"] = json!("create");
    rig.post(&format!("/threads/{implicit}/runs/wait"), &request)
        .await
        .ok();
    for thread in [stored["thread_id"].as_str().expect("an id"), implicit] {
        let ttl = ttl(thread).await;
        assert_eq!(
            (&ttl["strategy"], &ttl["ttl_minutes"]),
            (&json!("keep_latest"), &json!(90.0))
        );
    }
    let deerflow = "0bd06ce7-e763-4b9c-af17-60e5565443f1";
    let named = json!({"config": {"configurable": {"thread_id": deerflow}}});
    rig.post("/api/runs/wait", &body_with("then say x", named))
        .await
        .ok();
    assert_eq!(ttl(deerflow).await, Value::Null);
}

#[tokio::test]
async fn thread_created_with_goto_continues_at_that_node() {
    let rig = Rig::start().await;
    let prompt = json!([{"role": "user", "content": "then say x"}, {"role": "assistant", "content": "not this"}]);
    let updates =
        json!([{"as_node": "model", "command": {"update": {"messages": prompt}, "goto": "model"}}]);
    let request =
        json!({"metadata": {"graph_id": "lead_agent"}, "supersteps": [{"updates": updates}]});
    let thread = rig.post("/threads", &request).await.ok();
    assert_eq!(thread["status"], "interrupted");
    let path = format!("/threads/{}", text(&thread["thread_id"]));
    assert_eq!(
        rig.get(&format!("{path}/state")).await.ok()["next"],
        json!(["model"])
    );
    // The messages alone leave no node to run.
    let values = rig
        .post(
            &format!("{path}/runs/wait"),
            &json!({"assistant_id": "lead_agent", "input": null}),
        )
        .await
        .ok();
    assert_eq!(
        visible_messages(&values),
        messages_of(&[("human", "then say x"), ("ai", "not this"), ("ai", "x")])
    );
    assert_eq!(rig.get(&path).await.ok()["status"], "idle");
}
