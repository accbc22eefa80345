//! A second run on a busy thread.

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{Rig, body, body_with, list, messages_of, text};

async fn busy(rig: &Rig) -> (String, String) {
    let thread = rig.thread().await;
    let mut stream = rig.stream(&thread, &body("[[slow 1000x10ms]]")).await;
    let metadata = stream
        .next_frame()
        .await
        .expect("frame")
        .expect("open")
        .json()
        .expect("json");
    stream
        .next_named("messages")
        .await
        .expect("frame")
        .expect("open");
    (thread, text(&metadata["run_id"]).to_owned())
}

#[tokio::test]
async fn reject_leaves_first_run_unchanged() {
    let rig = Rig::start().await;
    let (thread, first) = busy(&rig).await;
    for (way, strategy) in [
        ("", json!("reject")),
        ("/stream", json!(null)),
        ("/wait", json!("reject")),
    ] {
        let second = rig
            .post(
                &format!("/api/threads/{thread}/runs{way}"),
                &body_with("hi", json!({"multitask_strategy": strategy})),
            )
            .await;
        assert!(
            text(&second.refusal(409)).contains("already has an active run"),
            "{}",
            second.text
        );
    }
    assert_eq!(rig.get_run(&thread, &first).await["status"], "running");
    assert_eq!(
        list(&rig.get(&format!("/api/threads/{thread}/runs")).await.ok()).len(),
        1
    );
}

#[tokio::test]
async fn interrupt_keeps_partial_answer_and_continues_from_it() {
    let rig = Rig::start().await;
    let (thread, first) = busy(&rig).await;
    let second = rig
        .run(
            &thread,
            &body_with("then say y", json!({"multitask_strategy": "interrupt"})),
        )
        .await;
    assert_eq!(rig.get_run(&thread, &first).await["status"], "interrupted");
    assert_eq!(rig.get_run(&thread, &second.run).await["status"], "success");
    let actual = rig.visible_messages(&thread).await;
    assert_eq!(
        actual.first(),
        messages_of(&[("human", "[[slow 1000x10ms]]")]).first()
    );
    assert_eq!(
        actual[actual.len() - 2..],
        messages_of(&[("human", "then say y"), ("ai", "y")])
    );
}

#[tokio::test]
async fn rollback_reverts_first_run() {
    let rig = Rig::start().await;
    let (thread, first) = busy(&rig).await;
    let second = rig
        .run(
            &thread,
            &body_with("then say y", json!({"multitask_strategy": "rollback"})),
        )
        .await;
    assert_eq!(rig.get_run(&thread, &second.run).await["status"], "success");
    assert_eq!(
        rig.visible_messages(&thread).await,
        messages_of(&[("human", "then say y"), ("ai", "y")])
    );
    let shown = rig
        .get(&format!("/api/threads/{thread}/runs/{first}"))
        .await;
    assert!(
        shown.status == 404 || shown.ok()["status"] == "error",
        "{}",
        shown.text
    );
}

#[tokio::test]
async fn concurrent_run_creation_accepts_exactly_one() {
    let rig = Rig::start().await;
    for _ in 0..3 {
        let thread = rig.thread().await;
        let path = format!("/api/threads/{thread}/runs");
        let body = body("[[slow 1000x10ms]]");
        let answers = join_all((0..6).map(|_| rig.post(&path, &body))).await;
        let mut statuses: Vec<u16> = answers
            .iter()
            .map(|answer| answer.status.as_u16())
            .collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
        assert_eq!(list(&rig.get(&path).await.ok()).len(), 1);
    }
}

#[tokio::test]
async fn concurrent_interrupts_leave_one_run_and_no_orphan() {
    let rig = Rig::start().await;
    let (thread, _) = busy(&rig).await;
    let path = format!("/api/threads/{thread}/runs");
    let body = body_with("then say y", json!({"multitask_strategy": "interrupt"}));
    let answers = join_all((0..4).map(|_| rig.post(&path, &body))).await;
    assert!(answers.iter().any(|answer| answer.status == 200));
    for answer in answers {
        match answer.status.as_u16() {
            200 => assert!(matches!(
                rig.wait_for_end(&thread, text(&answer.json()["run_id"]))
                    .await
                    .as_str(),
                "success" | "interrupted"
            )),
            _ => drop(answer.refusal(409)),
        }
    }
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}")).await.ok()["status"],
        "idle"
    );
}

#[tokio::test]
async fn threads_do_not_block_each_other() {
    let rig = Rig::start().await;
    busy(&rig).await;
    let other = rig.run_prompt("then say x").await;
    assert_eq!(other.names().last(), Some(&"end"));
}

#[tokio::test]
async fn many_concurrent_runs_all_finish() {
    let rig = Rig::start().await;
    let runs = (0..40).map(|n| {
        let rig = &rig;
        async move {
            rig.run_prompt(&format!(
                "[[slow 20x5ms]] then say the answer to question number {n}"
            ))
            .await
        }
    });
    for (n, run) in join_all(runs).await.into_iter().enumerate() {
        assert_eq!(run.names().last(), Some(&"end"));
        assert_eq!(
            crate::rig::visible_messages(&run.last_values())[1].1,
            format!("the answer to question number {n}")
        );
    }
}

#[tokio::test]
async fn unknown_strategy_is_rejected() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for strategy in [json!("queue"), json!(5), json!(["reject"])] {
        rig.post(
            &format!("/api/threads/{thread}/runs"),
            &body_with("hi", json!({"multitask_strategy": strategy})),
        )
        .await
        .refusal(422);
    }
}
