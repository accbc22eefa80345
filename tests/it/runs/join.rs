//! `GET /api/threads/{thread}/runs/{run}/stream` and `/join`.

use bytes::Bytes;
use deerflow_tests::sse::SseFrame;
use reqwest::Method;
use serde_json::json;

use crate::rig::{FinishedRun, HttpResponse, Rig, body, message_text};

async fn joined(rig: &Rig, run: &FinishedRun, cursor: Option<&str>) -> Vec<Bytes> {
    raw(&rig
        .join(&run.thread, &run.run, cursor)
        .await
        .collect()
        .await
        .expect("whole stream"))
}

fn raw(frames: &[SseFrame]) -> Vec<Bytes> {
    frames.iter().map(|frame| frame.raw.clone()).collect()
}

#[tokio::test]
async fn late_viewer_receives_every_byte() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say one two three").await;
    for cursor in [None, Some("-1"), Some("-"), Some("0"), Some("0-0")] {
        assert_eq!(
            joined(&rig, &run, cursor).await,
            raw(&run.frames),
            "{cursor:?}"
        );
    }
}

#[tokio::test]
async fn reconnected_viewer_receives_exactly_the_missing_events() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say one two three").await;
    for (at, frame) in run.frames.iter().enumerate() {
        if let Some(id) = &frame.id {
            assert_eq!(
                joined(&rig, &run, Some(id)).await,
                raw(&run.frames[at + 1..]),
                "{id}"
            );
        }
    }
}

#[tokio::test]
async fn viewer_cut_off_mid_stream_resumes_without_gap() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let mut first = rig.stream(&thread, &body("[[slow 60x15ms]]")).await;
    let run = first.response().headers()["content-location"]
        .to_str()
        .expect("text")
        .rsplit('/')
        .next()
        .expect("id")
        .to_owned();
    let mut seen = Vec::new();
    while seen.len() < 12 {
        let frame = first.next_frame().await.expect("frame").expect("open");
        if !frame.is_comment() {
            seen.push(frame);
        }
    }
    drop(first);
    let cursor = seen
        .last()
        .and_then(|frame| frame.id.clone())
        .expect("an id");
    let rest = rig
        .join(&thread, &run, Some(&cursor))
        .await
        .collect()
        .await
        .expect("whole stream");
    assert!(rest.len() > 20, "the run was still active");
    seen.extend(rest);
    let whole = rig
        .join(&thread, &run, None)
        .await
        .collect()
        .await
        .expect("whole stream");
    assert_eq!(raw(&seen), raw(&whole));
}

#[tokio::test]
async fn all_viewers_receive_the_same_events() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig.background(&thread, &body("[[slow 30x10ms]]")).await;
    let viewers = (0..8).map(|_| async {
        raw(&rig
            .join(&thread, &run, None)
            .await
            .collect()
            .await
            .expect("whole stream"))
    });
    let seen = futures_util::future::join_all(viewers).await;
    assert!(
        seen.iter().all(|frames| *frames == seen[0]),
        "viewers differ"
    );
}

#[tokio::test]
async fn invalid_cursor_is_rejected_and_foreign_one_reports_gap() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let path = format!("/api/threads/{}/runs/{}/stream", run.thread, run.run);
    for cursor in [
        "garbage",
        "1",
        "1-",
        "-1-1",
        "1-2-3",
        "99999999999999999999999999-1",
        "1.5-1",
    ] {
        let answer = HttpResponse::of(
            rig.request(Method::GET, &path)
                .header("last-event-id", cursor),
        )
        .await;
        assert_eq!(answer.status, 422, "{cursor}: {}", answer.text);
        answer.refusal(422);
    }
    let frames = rig
        .join(&run.thread, &run.run, Some("999999-1"))
        .await
        .collect()
        .await
        .expect("whole stream");
    assert_eq!(frames.len(), 1, "{frames:?}");
    let gap = frames[0].json().expect("json");
    assert_eq!(frames[0].name(), "gap");
    assert_eq!(
        (&gap["code"], &gap["run_id"]),
        (&json!("stream_replay_gap"), &json!(run.run))
    );
    assert_eq!(
        (&gap["requested_event_id"], &gap["recovery"]),
        (&json!("999999-1"), &json!("reload_durable_state"))
    );
    for bound in ["earliest_available_event_id", "latest_available_event_id"] {
        assert!(gap[bound].is_string(), "{gap}");
    }
}

#[tokio::test]
async fn long_run_is_retained_from_first_event() {
    let rig = Rig::start().await;
    // More events than the 256 that DeerFlow retains.
    let run = rig.run_prompt("[[slow 600x0ms]]").await;
    assert!(run.frames.len() > 600);
    assert_eq!(joined(&rig, &run, Some("-1")).await, raw(&run.frames));
}

#[tokio::test]
async fn join_returns_final_values_as_json() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig
        .background(&thread, &body("[[slow 10x10ms]] then say one two three"))
        .await;
    let path = format!("/api/threads/{thread}/runs/{run}/join");
    let values = HttpResponse::of(
        rig.request(Method::GET, &path)
            .header("accept", "application/json"),
    )
    .await
    .ok();
    assert_eq!(
        message_text(
            values["messages"]
                .as_array()
                .and_then(|all| all.last())
                .expect("an answer")
        ),
        "one two three"
    );
    let frames = crate::rig::events(
        rig.request(Method::GET, &path)
            .header("accept", "text/event-stream")
            .send()
            .await
            .expect("answer"),
    )
    .await;
    assert_eq!(
        frames
            .collect()
            .await
            .expect("whole stream")
            .last()
            .map(|frame| frame.name().to_owned())
            .as_deref(),
        Some("end")
    );
}
