//! Calls: concurrency, limits, cancellation and failures.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::model::CallToolResult;
use serde_json::json;
use tokio::time::timeout;

use super::support::{HELD_PROMPT, Server, TIMEOUT, call, message_text, run};
use crate::rig::{CANARY, text, until};

#[tokio::test]
async fn calls_run_concurrently_but_not_on_one_thread() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    let busy = client
        .refused(
            "ask",
            json!({"message": "then say no", "thread_id": thread}),
        )
        .await;
    assert!(busy.contains("still works on thread"), "{busy}");
    assert_eq!(
        client.ask(json!({"message": "then say beside"})).await["text"],
        "beside"
    );
    server.model.release();
    let answered = timeout(TIMEOUT, pending_call.await_response())
        .await
        .expect("in time")
        .expect("an answer");
    let answered = json!(answered);
    assert!(
        text(&answered["structuredContent"]["text"]).starts_with("tok0 "),
        "{answered}"
    );
}

#[tokio::test]
async fn cancelled_call_stops_its_run() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    pending_call
        .cancel(Some("never mind".to_owned()))
        .await
        .expect("cancelled");
    // A cancelled call gets no response: the only visible effect is that the thread becomes free.
    until("a free thread", async || {
        let result = client
            .call(
                "ask",
                json!({"message": "then say after", "thread_id": thread}),
            )
            .await;
        (result.is_error == Some(false)).then_some(())
    })
    .await;
    let asked = server
        .model
        .requests()
        .into_iter()
        .rev()
        .find(|request| !request.tools.is_empty())
        .expect("a request");
    let messages = json!(asked.messages).to_string();
    assert!(
        messages.contains("tok0") && !messages.contains("tok39"),
        "the streamed text stays: {messages}"
    );
}

#[tokio::test]
async fn disconnected_client_leaves_no_active_run() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    // Closes the streams without a protocol message.
    client.0.cancel().await.expect("closed");
    drop(pending_call);
    let status = timeout(TIMEOUT, server.child.wait())
        .await
        .expect("the process ends with its client")
        .expect("a status");
    assert!(status.success(), "{status}");
    server.child = run(&server.home);
    let (client, _heard) = server.client().await;
    let answer = client
        .ask(json!({"message": "then say after", "thread_id": thread}))
        .await;
    assert_eq!(answer["text"], "after", "no interrupted run was resumed");
}

#[tokio::test]
async fn failure_is_returned_as_readable_result() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    for (tool, arguments, named) in [
        ("ask", json!({}), "message"),
        ("ask", json!({"message": ["no", "text"]}), "`message`"),
        ("ask", json!({"message": " "}), "empty"),
        (
            "ask",
            json!({"message": "x".repeat(2 << 20)}),
            "the maximum",
        ),
        (
            "ask",
            json!({"message": "x", "temperature": 1}),
            "temperature",
        ),
        (
            "ask",
            json!({"message": "x", "thread_id": "../x"}),
            "thread_id",
        ),
        (
            "ask",
            json!({"message": "x", "thread_id": "made-up"}),
            "no thread made-up",
        ),
        (
            "ask",
            json!({"message": "x", "model": "no-such-model"}),
            "no-such-model",
        ),
        (
            "read_artifact",
            json!({"thread_id": "made-up", "path": "/mnt/user-data/outputs/a"}),
            "no thread",
        ),
    ] {
        let problem = client.refused(tool, arguments).await;
        assert!(problem.contains(named), "{named}: {problem}");
    }
    let failed = client
        .refused("ask", json!({"message": "[[error 400]]"}))
        .await;
    assert!(!failed.contains(CANARY), "{failed}");
    let thread = client.ask(json!({"message": "then say fine"})).await["thread_id"].clone();
    for path in [
        "/etc/passwd",
        "/mnt/user-data/../../etc/passwd",
        "/mnt/user-data/outputs/none",
        "",
        "a\u{0}b",
    ] {
        let problem = client
            .refused("read_artifact", json!({"thread_id": thread, "path": path}))
            .await;
        assert!(!problem.contains(".deer-flow"), "{problem}");
    }
    let unknown = client
        .0
        .peer()
        .call_tool_once(call("format_disk", json!({})))
        .await
        .expect_err("no tool");
    assert!(unknown.to_string().contains("format_disk"), "{unknown}");
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    let mut asked: FuturesUnordered<_> = (0..20)
        .map(|_| client.call("ask", json!({"message": HELD_PROMPT})))
        .collect();
    for _ in 0..4 {
        let refused = asked.next().await.expect("a result");
        assert!(
            refused.is_error == Some(true) && message_text(&refused).contains("16 calls already"),
            "{refused:?}"
        );
    }
    server.model.release();
    let answered: Vec<CallToolResult> = asked.collect().await;
    assert!(
        answered.len() == 16 && answered.iter().all(|result| result.is_error == Some(false)),
        "{answered:?}"
    );
}
