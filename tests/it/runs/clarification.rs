//! Clarifications, as DeerFlow does them: the run ends successfully, and the user's answer is a new
//! run.

use serde_json::{Value, json};

use crate::rig::{FinishedRun, Rig, body_with, list, message_text, text};

async fn asked(rig: &Rig) -> FinishedRun {
    let question = json!({"question": "Which colour?", "clarification_type": "approach_choice", "options": ["red", "blue"]});
    rig.run_prompt(&format!(
        "Paint it [[tool:ask_clarification {question}]] then say never reached"
    ))
    .await
}

#[tokio::test]
async fn clarification_ends_run_with_form_for_user() {
    let rig = Rig::start().await;
    let run = asked(&rig).await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    assert_eq!(
        rig.get(&format!("/api/threads/{}", run.thread)).await.ok()["status"],
        "idle"
    );
    let values = run.last_values();
    assert!(values.get("__interrupt__").is_none());
    let card = list(&values["messages"]).last().expect("a message");
    let call = text(&card["tool_call_id"]);
    assert_eq!(
        (&card["type"], &card["name"], &card["status"]),
        (
            &json!("tool"),
            &json!("ask_clarification"),
            &json!("success")
        )
    );
    assert_eq!(card["id"], format!("clarification:{call}"));
    let content = message_text(card);
    assert!(
        ["Which colour?", "1. red", "2. blue"]
            .iter()
            .all(|part| content.contains(part)),
        "{content}"
    );
    let question = &card["artifact"]["human_input"];
    assert_eq!(
        (&question["version"], &question["kind"]),
        (&json!(1), &json!("human_input_request"))
    );
    assert_eq!(
        (&question["source"], &question["question"]),
        (&json!("ask_clarification"), &json!("Which colour?"))
    );
    assert_eq!(question["request_id"], format!("clarification:{call}"));
    assert_eq!(
        (&question["clarification_type"], &question["input_mode"]),
        (&json!("approach_choice"), &json!("choice_with_other"))
    );
    assert_eq!(
        question["options"][1],
        json!({"id": "option-2", "label": "blue", "value": "blue"})
    );
    assert_eq!(
        rig.model
            .requests()
            .iter()
            .filter(|request| !request.tools.is_empty())
            .count(),
        1,
        "the model waits"
    );
}

#[tokio::test]
async fn answer_continues_and_marks_clarification_answered() {
    let rig = Rig::start().await;
    let run = asked(&rig).await;
    let card = list(&run.last_values()["messages"])
        .last()
        .cloned()
        .expect("a message");
    let answer = json!({
        "version": 1, "kind": "human_input_response", "source": "ask_clarification",
        "request_id": card["id"], "response_kind": "option", "option_id": "option-2", "value": "blue",
    });
    let message = json!({
        "type": "human",
        "content": [{"type": "text", "text": "For your clarification \"Which colour?\", my answer is: blue then say Painted."}],
        "additional_kwargs": {"hide_from_ui": true, "human_input_response": answer},
    });
    let reply = rig
        .run(
            &run.thread,
            &body_with("", json!({"input": {"messages": [message]}})),
        )
        .await;
    assert_eq!(
        rig.get_run(&run.thread, &reply.run).await["status"],
        "success"
    );
    assert_eq!(
        message_text(
            list(&reply.last_values()["messages"])
                .last()
                .expect("a message")
        ),
        "Painted."
    );
    assert_eq!(rig.model.rejections(), 0);
    let page = rig
        .get(&format!("/api/threads/{}/messages/page", run.thread))
        .await
        .ok();
    let hidden =
        |row: &&Value| row["content"]["additional_kwargs"]["human_input_response"].is_object();
    assert_eq!(
        list(&page["data"]).iter().filter(hidden).count(),
        1,
        "{page}"
    );
}
