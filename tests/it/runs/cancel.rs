//! `POST /api/threads/{thread}/runs/{run}/cancel`.

use serde_json::Value;

use crate::rig::{HttpResponse, Rig, body, messages_of, text};

/// Starts a run that has already streamed some text.
async fn run_with_output(rig: &Rig) -> (String, String) {
    let thread = rig.thread().await;
    let mut stream = rig.stream(&thread, &body("[[slow 1000x10ms]]")).await;
    let mut run = String::new();
    loop {
        let frame = stream.next_frame().await.expect("frame").expect("open");
        let data = frame.json().unwrap_or_default();
        match frame.name() {
            "metadata" => run = text(&data["run_id"]).to_owned(),
            "messages" if data[0]["type"] == "AIMessageChunk" && data[0]["content"] == "tok3 " => {
                return (thread, run);
            }
            _ => {}
        }
    }
}

async fn cancel(rig: &Rig, thread: &str, run: &str, query: &str) -> HttpResponse {
    HttpResponse::of(rig.request(
        reqwest::Method::POST,
        &format!("/api/threads/{thread}/runs/{run}/cancel{query}"),
    ))
    .await
}

#[tokio::test]
async fn cancel_with_wait_returns_after_run_ended() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    let cancelled = cancel(&rig, &thread, &run, "?wait=1").await;
    assert_eq!(
        (cancelled.status.as_u16(), cancelled.text.as_str()),
        (204, "")
    );
    assert_eq!(rig.get_run(&thread, &run).await["status"], "interrupted");
}

#[tokio::test]
async fn cancel_without_wait_is_accepted_and_applied() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    let cancelled = cancel(&rig, &thread, &run, "?wait=0&action=interrupt").await;
    assert_eq!(
        (cancelled.status.as_u16(), cancelled.text.as_str()),
        (202, "")
    );
    assert_eq!(rig.wait_for_end(&thread, &run).await, "interrupted");
    assert_eq!(
        cancel(&rig, &thread, &run, "").await.status,
        202,
        "a second cancel is not an error"
    );
}

#[tokio::test]
async fn interrupted_answer_keeps_streamed_text() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    cancel(&rig, &thread, &run, "?wait=1").await;
    let actual = rig.visible_messages(&thread).await;
    assert_eq!(actual.len(), 2, "{actual:?}");
    assert!(
        actual[1].0 == "ai" && actual[1].1.starts_with("tok0 tok1 tok2 tok3 "),
        "{actual:?}"
    );
    let frames = rig
        .join(&thread, &run, None)
        .await
        .collect()
        .await
        .expect("whole stream");
    assert_eq!(
        frames
            .last()
            .map(|frame| frame.name().to_owned())
            .as_deref(),
        Some("end")
    );
    assert!(
        frames.iter().all(|frame| frame.name() != "error"),
        "a stop is not an error"
    );
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .ok();
    assert_eq!(
        page["data"].as_array().map(Vec::len),
        Some(2),
        "transcript and state agree: {page}"
    );
    let next = rig.run(&thread, &body("then say on")).await;
    assert_eq!(rig.wait_for_end(&thread, &next.run).await, "success");
    assert_eq!(
        rig.visible_messages(&thread).await.last(),
        Some(&("ai".to_owned(), "on".to_owned()))
    );
}

#[tokio::test]
async fn rollback_restores_previous_thread_state() {
    let rig = Rig::start().await;
    let before = rig.run_prompt("then say x").await;
    let thread = before.thread;
    let run = rig.background(&thread, &body("[[slow 1000x10ms]]")).await;
    assert_eq!(
        cancel(&rig, &thread, &run, "?wait=1&action=rollback")
            .await
            .status,
        204
    );
    assert_eq!(
        rig.visible_messages(&thread).await,
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
    let record = rig.get(&format!("/api/threads/{thread}")).await.ok();
    assert_eq!(record["status"], "idle", "{record}");
    rig.run(&thread, &body("then say y")).await;
    assert_eq!(rig.visible_messages(&thread).await.len(), 4);
}

#[tokio::test]
async fn finished_run_cannot_be_cancelled() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let before = rig.get_run(&run.thread, &run.run).await;
    for query in ["", "?wait=1", "?action=rollback"] {
        let detail = cancel(&rig, &run.thread, &run.run, query)
            .await
            .refusal(409);
        assert!(
            text(&detail).contains("is not cancellable (status: success)"),
            "{detail}"
        );
    }
    assert_eq!(rig.get_run(&run.thread, &run.run).await, before);
}

#[tokio::test]
async fn cancel_with_unknown_action_or_id_is_rejected() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    let detail = cancel(&rig, &thread, &run, "?action=explode")
        .await
        .refusal(422);
    assert_eq!(detail[0]["type"], "literal_error", "{detail}");
    cancel(&rig, &thread, &run, "?wait=maybe")
        .await
        .refusal(422);
    cancel(&rig, &thread, "nobody", "").await.refusal(404);
    cancel(&rig, "nobody", &run, "").await.refusal(404);
    assert_eq!(rig.get_run(&thread, &run).await["status"], "running");
}

#[tokio::test]
async fn nothing_is_streamed_after_confirmed_cancel() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    cancel(&rig, &thread, &run, "?wait=1").await;
    let count = async || {
        rig.join(&thread, &run, None)
            .await
            .collect()
            .await
            .expect("whole stream")
            .len()
    };
    let at_once = count().await;
    rig.run_prompt("then say x").await;
    assert_eq!(count().await, at_once);
}

#[tokio::test]
async fn cancel_followed_by_new_run_succeeds() {
    let rig = Rig::start().await;
    let (thread, run) = run_with_output(&rig).await;
    assert_eq!(cancel(&rig, &thread, &run, "?wait=0").await.status, 202);
    let next = rig.run(&thread, &body("then say on")).await;
    assert_eq!(rig.get_run(&thread, &next.run).await["status"], "success");
    let first: Value = rig.get_run(&thread, &run).await;
    assert_eq!(first["status"], "interrupted");
}

#[tokio::test]
async fn hanging_provider_does_not_delay_cancel() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let mut stream = rig.stream(&thread, &body("[[delay 60000]]")).await;
    let values = stream
        .next_named("metadata")
        .await
        .expect("frame")
        .expect("open")
        .json()
        .expect("json");
    assert_eq!(
        cancel(&rig, &thread, text(&values["run_id"]), "?wait=1")
            .await
            .status,
        204
    );
    assert_eq!(
        rig.visible_messages(&thread).await[0],
        ("human".to_owned(), "[[delay 60000]]".to_owned())
    );
}

#[tokio::test]
async fn cancel_at_any_moment_leaves_usable_thread() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for n in 0..24_u64 {
        let run = rig.background(&thread, &body("[[slow 6x2ms]]")).await;
        let action = if n % 2 == 0 { "interrupt" } else { "rollback" };
        tokio::time::sleep(std::time::Duration::from_millis(n)).await;
        let cancelled = cancel(&rig, &thread, &run, &format!("?wait=1&action={action}")).await;
        assert!(
            matches!(cancelled.status.as_u16(), 204 | 409),
            "{n}: {} {}",
            cancelled.status,
            cancelled.text
        );
        let status = rig.wait_for_end(&thread, &run).await;
        let expected: &[&str] = match (cancelled.status.as_u16(), action) {
            (409, _) => &["success"],
            (_, "interrupt") => &["interrupted", "success"],
            _ => &["error", "success"],
        };
        assert!(
            expected.contains(&status.as_str()),
            "{n}: {action} gave {status}"
        );
    }
    let last = rig.run(&thread, &body("then say still here")).await;
    assert_eq!(rig.get_run(&thread, &last.run).await["status"], "success");
    assert_eq!(
        rig.visible_messages(&thread)
            .await
            .last()
            .map(|last| last.1.clone())
            .as_deref(),
        Some("still here")
    );
    assert_eq!(rig.model.rejections(), 0);
}
