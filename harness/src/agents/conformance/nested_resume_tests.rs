//! Tests of nested agents that resume after a question, a stop or a rollback.

use super::*;

#[tokio::test]
async fn nested_agent_resumes_from_its_question() {
    let rig = rig();
    let spec = say(&ask_inside(
        "ask_twice",
        json!({ "first": "a?", "second": "b?" }),
    ));
    let interrupted = rig.wait(spec).await;
    let stored = rig.history().await;
    let (outer, inner) = (stored.last().unwrap(), inside(stored.last().unwrap()));
    assert_eq!(
        interrupted["__interrupt__"][0]["value"],
        json!({ "question": "a?" })
    );
    assert_eq!(outer.meta.next[0].interrupts, inner.meta.next[0].interrupts);
    assert_eq!(inner.meta.next[0].name, "tools");
    let before = answer_texts(&inner);

    let resumed = rig.wait(resume(json!("A"))).await;
    assert_eq!(
        resumed["__interrupt__"][0]["value"],
        json!({ "question": "b?" })
    );
    assert_ne!(
        resumed["__interrupt__"][0]["id"],
        interrupted["__interrupt__"][0]["id"]
    );
    assert_eq!(
        answer_texts(&inside(rig.history().await.last().unwrap())),
        before
    );

    let id = resumed["__interrupt__"][0]["id"].as_str().unwrap();
    let done = rig.wait(resume(json!({ id: "B" }))).await;
    assert_eq!(texts(&done)[2..], ["inside", "outside"]);
    assert_eq!(rig.history().await.len(), 5);
}

#[tokio::test]
async fn nested_questions_are_asked_one_at_a_time() {
    let rig = rig();
    let calls = json!([
        { "name": "ask_clarification", "args": { "question": "a?" } },
        { "name": "ask_clarification", "args": { "question": "b?" } },
    ]);
    rig.wait(say(&task(&format!("[[tools:{calls}]] then say inside"))))
        .await;
    let open = |snapshot: &Snapshot| {
        inside(snapshot)
            .meta
            .next
            .iter()
            .flat_map(|task| task.interrupts.clone())
            .count()
    };
    assert_eq!(open(rig.history().await.last().unwrap()), 2);
    let resumed = rig.wait(resume(json!("A"))).await;
    assert_eq!(resumed["__interrupt__"].as_array().unwrap().len(), 1);
    assert_eq!(
        resumed["__interrupt__"][0]["value"],
        json!({ "question": "b?" })
    );
    assert_eq!(
        texts(&rig.wait(resume(json!("B"))).await)[2..],
        ["inside", "outside"]
    );
}

#[tokio::test]
async fn question_can_be_answered_again_from_its_checkpoint() {
    let rig = rig();
    rig.wait(say(&ask_inside(
        "ask_clarification",
        json!({ "question": "which?" }),
    )))
    .await;
    let interrupted = rig
        .history()
        .await
        .last()
        .unwrap()
        .meta
        .checkpoint_id
        .clone();
    for answer in ["red", "blue"] {
        let spec = RunRequest {
            checkpoint: Some(CheckpointRef {
                checkpoint_id: interrupted.clone(),
            }),
            ..viewed(resume(json!(answer)))
        };
        let frames = rig.frames(spec, &[StreamMode::Values]).await;
        let last = &frames
            .iter()
            .rfind(|(event, _)| event.starts_with("values|"))
            .unwrap()
            .1;
        assert_eq!(texts(last)[2..], [answer, "inside"]);
        assert_eq!(texts(&frames.last().unwrap().1)[2..], ["inside", "outside"]);
    }
}

#[tokio::test]
async fn deferred_checkpoint_contains_the_nested_agent() {
    let rig = rig();
    let spec = say(&ask_inside(
        "ask_clarification",
        json!({ "question": "which?" }),
    ));
    rig.wait(RunRequest {
        durability: Durability::Exit,
        ..spec
    })
    .await;
    assert_eq!(
        inside(rig.history().await.last().unwrap()).meta.next.len(),
        1
    );
    assert_eq!(
        texts(&rig.wait(resume(json!("red"))).await)[2..],
        ["inside", "outside"]
    );
}

/// Starts a run and cancels it at the first token of the nested agent.
async fn cancelled_inside(rig: &Rig, spec: RunRequest, action: CancelAction) {
    let spec = viewed(RunRequest {
        stream_modes: [StreamMode::MessagesTuple].into_iter().collect(),
        ..spec
    });
    let (record, mut stream) = rig
        .0
        .create_and_stream(spec, Duration::from_secs(60))
        .await
        .unwrap();
    while let Some(item) = stream.items.next().await {
        if matches!(item, StreamItem::Event(event) if event.event.starts_with("messages|") && event.data.clone().into_bytes().windows(4).any(|part| part == b"tok3"))
        {
            break;
        }
    }
    rig.0
        .cancel(None, &record.run_id, action, true)
        .await
        .unwrap();
}

#[tokio::test]
async fn stopped_nested_agent_resumes_at_its_position() {
    let rig = rig();
    let prompt = r#"[[tool:bash {"command":"echo hi"}]] [[slow 40x20ms]]"#;
    cancelled_inside(&rig, say(&task(prompt)), CancelAction::Interrupt).await;
    let stored = inside(rig.history().await.last().unwrap());
    assert_eq!(
        (
            answer_texts(&stored)[2..].to_vec(),
            stored.meta.next[0].name.as_str()
        ),
        (vec!["hi".to_owned()], "model")
    );
    let frames = rig
        .frames(viewed(go(RunInput::Continue)), &[StreamMode::Updates])
        .await;
    let nodes: Vec<&str> = frames
        .iter()
        .filter(|(event, _)| event.contains('|'))
        .flat_map(|(_, update)| keys(update))
        .collect();
    assert_eq!(nodes, ["model"]);
}

#[tokio::test]
async fn rollback_restores_the_nested_question() {
    let rig = rig();
    rig.wait(say(&task(
        r#"[[tool:ask_clarification {"question":"which?"}]] [[slow 40x20ms]]"#,
    )))
    .await;
    let before = rig.history().await;
    cancelled_inside(&rig, resume(json!("red")), CancelAction::Rollback).await;
    let after = rig.history().await;
    assert_eq!(after.last().unwrap().meta, before.last().unwrap().meta);
    assert_eq!(
        answer_texts(&inside(after.last().unwrap())),
        answer_texts(&inside(before.last().unwrap()))
    );
}
