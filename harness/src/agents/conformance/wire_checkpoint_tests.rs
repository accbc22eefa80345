//! Tests of the checkpoints of runs, forks, commands and breakpoints.

use super::*;

#[tokio::test]
async fn answer_writes_three_checkpoints_and_tool_turn_five() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let first = [
        r#"input -1 ["__start__"] (0)"#,
        r#"loop 0 ["model"] (1)"#,
        r#"loop 1 [] (2)"#,
    ];
    assert_eq!(describe(&rig.history().await), first);
    rig.wait(say(TOOL_TURN)).await;
    let second = [
        r#"input 2 ["__start__"] (2)"#,
        r#"loop 3 ["model"] (3)"#,
        r#"loop 4 ["tools"] (4)"#,
        r#"loop 5 ["model"] (5)"#,
        r#"loop 6 [] (6)"#,
    ];
    let history = rig.history().await;
    assert_eq!(describe(&history[3..]), second);
    assert!(
        history
            .windows(2)
            .all(|pair| pair[1].meta.parent_id.as_ref() == Some(&pair[0].meta.checkpoint_id))
    );
}

#[tokio::test]
async fn interrupt_is_stored_with_its_checkpoint() {
    let rig = rig();
    let interrupted = rig.wait(say(ASK)).await;
    let question = json!({ "value": { "question": "which one?" }, "id": interrupted["__interrupt__"][0]["id"], "response_schema": null });
    assert_eq!(interrupted["__interrupt__"], json!([question]));
    let history = rig.history().await;
    assert_eq!(
        describe(&history).last().unwrap(),
        r#"loop 1 ["tools"] (2)"#
    );
    assert_eq!(
        history.last().unwrap().meta.next[0].interrupts[0]["id"],
        question["id"]
    );
    let answered = rig.wait(go(RunInput::Resume(json!("red")))).await;
    assert_eq!(texts(&answered)[2..], ["red", "thanks"]);
    assert_eq!(
        describe(&rig.history().await)[3..],
        [r#"loop 2 ["model"] (3)"#, r#"loop 3 [] (4)"#]
    );
}

#[tokio::test]
async fn durability_determines_the_number_of_checkpoints() {
    for (durability, count) in [
        (Durability::Sync, 5),
        (Durability::Async, 5),
        (Durability::Exit, 1),
    ] {
        let rig = rig();
        rig.wait(RunRequest {
            durability,
            ..say(TOOL_TURN)
        })
        .await;
        let history = rig.history().await;
        assert_eq!(history.len(), count, "{durability:?}");
        let last = history.last().unwrap();
        assert_eq!((last.meta.step, last.state.messages().len()), (3, 4));
        rig.wait(RunRequest {
            durability,
            ..say(ASK)
        })
        .await;
        assert_eq!(
            rig.history().await.last().unwrap().meta.next[0]
                .interrupts
                .len(),
            1,
            "{durability:?}"
        );
        assert_eq!(
            texts(&rig.wait(go(RunInput::Resume(json!("x")))).await).last(),
            Some(&"thanks")
        );
    }
}

#[tokio::test]
async fn fork_starts_before_or_after_the_input() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let history = rig.history().await;
    let from = |at: usize| {
        Some(CheckpointRef {
            checkpoint_id: history[at].meta.checkpoint_id.clone(),
        })
    };
    let next_output = rig
        .wait(RunRequest {
            checkpoint: from(0),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(
        texts(&next_output),
        ["then say a", "a"],
        "the input of the following run is stored"
    );
    let other = rig
        .wait(RunRequest {
            checkpoint: from(0),
            ..say("then say b")
        })
        .await;
    assert_eq!(texts(&other), ["then say b", "b"]);
    let answer = rig
        .wait(RunRequest {
            checkpoint: from(1),
            ..go(RunInput::Continue)
        })
        .await;
    assert_eq!(texts(&answer), ["then say a", "a"]);
    let newest = rig.history().await;
    assert_eq!(
        newest.last().unwrap().meta.parent_id.as_ref(),
        Some(&history[1].meta.checkpoint_id)
    );
}

#[tokio::test]
async fn command_updates_the_thread_and_jumps_to_its_nodes() {
    let rig = rig();
    rig.wait(say("then say a")).await;
    let title = || StateUpdate::channel("title", json!("T"));
    let changed = rig
        .wait(go(RunInput::Command(ThreadCommand {
            update: title(),
            ..ThreadCommand::default()
        })))
        .await;
    assert_eq!(
        (&changed["title"], texts(&changed).len()),
        (&json!("T"), 2),
        "nothing is pending, so nothing runs"
    );
    let goto = |goto| ThreadCommand {
        goto,
        ..ThreadCommand::default()
    };
    let once_more = rig
        .wait(go(RunInput::Command(goto(vec![visit("model", None)]))))
        .await;
    assert_eq!(texts(&once_more), ["then say a", "a", "a"]);
    let call = json!({ "name": "bash", "args": { "command": "echo sent" }, "id": "c1" });
    let sent = rig
        .wait(go(RunInput::Command(goto(vec![
            visit("tools", Some(call)),
            visit("__end__", None),
        ]))))
        .await;
    assert_eq!(texts(&sent).last(), Some(&"sent"));
    assert!(rig.history().await.last().unwrap().meta.next.is_empty());
    let rejected = rig
        .wait(go(RunInput::Command(goto(vec![visit("nowhere", None)]))))
        .await;
    assert_eq!(rejected["error"], "InvalidUpdateError");
}

#[tokio::test]
async fn command_combines_resume_update_and_send() {
    let rig = rig();
    rig.wait(say(ASK)).await;
    let command = ThreadCommand {
        resume: Some(json!("red")),
        update: StateUpdate::channel("title", json!("T")),
        goto: vec![visit(
            "model",
            Some(json!({ "messages": [["user", "then say sent"]] })),
        )],
    };
    let values = rig.wait(go(RunInput::Command(command))).await;
    assert_eq!(texts(&values)[2..], ["red", "sent"]);
    assert_eq!(values["title"], "T");
    rig.wait(say(ASK)).await;
    let away = ThreadCommand {
        goto: vec![visit("model", None)],
        ..ThreadCommand::default()
    };
    let dropped = rig.wait(go(RunInput::Command(away))).await;
    assert!(dropped.get("__interrupt__").is_none());
}

#[tokio::test]
async fn breakpoint_writes_no_question_and_no_second_checkpoint() {
    let rig = rig();
    let stop = NodeSelector::Named(vec!["tools".to_owned()]);
    let frames = rig
        .frames(
            RunRequest {
                interrupt_before: stop,
                ..say(TOOL_TURN)
            },
            &[StreamMode::Updates, StreamMode::Values],
        )
        .await;
    assert_eq!(frames.last().unwrap().1, json!({ "__interrupt__": [] }));
    assert_eq!(
        describe(&rig.history().await).last().unwrap(),
        r#"loop 1 ["tools"] (2)"#
    );
    assert_eq!(rig.history().await.len(), 3);
    assert_eq!(
        texts(&rig.wait(go(RunInput::Continue)).await)[2..],
        ["hi", "done"]
    );
}

#[tokio::test]
async fn turn_on_a_long_thread_serializes_only_new_messages() {
    let rig = rig();
    let past = (0..250).flat_map(|n| {
        [
            Message::human(format!("question {n}")),
            Message::ai(format!("answer {n}")),
        ]
    });
    rig.wait(go(RunInput::Update(StateUpdate::messages(
        past.chain([Message::human("then say a")]),
    ))))
    .await;
    let before = SERIALIZED.get();
    let frames = rig.frames(say(TOOL_TURN), &[StreamMode::Values]).await;
    let lengths: Vec<usize> = frames
        .iter()
        .filter(|(event, _)| event == "values")
        .map(|(_, values)| texts(values).len())
        .collect();
    assert_eq!(lengths, [503, 504, 505, 506]);
    assert_eq!(
        SERIALIZED.get() - before,
        4,
        "the question, the call, its result and the answer"
    );
}
