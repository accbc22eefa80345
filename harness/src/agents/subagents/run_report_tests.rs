//! Tests of the events, the messages and the journal of a task.

use super::*;

#[tokio::test]
async fn task_reports_each_step_and_counts_usage_once() {
    let rig = rig(json!({}));
    let observed = rig.observe(delegate([task(LOOKUP)])).await;
    let kinds = [
        "task_started",
        "task_running",
        "task_running",
        "task_running",
        "task_completed",
    ];
    assert_eq!(observed.types(None), kinds);
    let result = rig.results().await.remove(0);
    let call = result.tool_call_id().unwrap();
    assert!(
        observed
            .progress
            .iter()
            .all(|progress| progress["task_id"] == call && progress["model_name"] == "scripted")
    );
    assert_eq!(observed.progress[0]["description"], "a part");
    let indices: Vec<_> = observed.progress[1..4]
        .iter()
        .map(|progress| {
            (
                progress["message_index"].as_u64(),
                progress["total_messages"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        indices,
        [(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), Some(3))]
    );
    let message_types: Vec<&str> = observed.progress[1..4]
        .iter()
        .map(|progress| progress["message"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(message_types, ["ai", "tool", "ai"]);
    assert_eq!(
        observed.progress[1]["message"]["tool_calls"][0]["name"],
        "look"
    );
    let usage = |total: u64| json!({"input_tokens": total / 18 * 11, "output_tokens": total / 18 * 7, "total_tokens": total});
    assert_eq!(
        (
            &observed.progress[1]["usage"],
            &observed.progress[3]["usage"]
        ),
        (&usage(18), &usage(36))
    );
    assert_eq!(
        (
            &observed.progress[4]["result"],
            &observed.progress[4]["usage"]
        ),
        (&json!("found it"), &usage(36))
    );

    assert_eq!(result.content.text(), "Task Succeeded. Result: found it");
    assert_eq!(result.additional_kwargs["subagent_token_usage"], usage(36));
    let done = rig.record(&observed.run).await.completion;
    assert_eq!(
        (
            done.lead_agent_tokens,
            done.subagent_tokens,
            done.middleware_tokens,
            done.total_tokens
        ),
        (220, 36, 0, 256)
    );
    assert_eq!(
        (
            done.llm_call_count,
            done.message_count,
            done.last_ai_message.as_deref()
        ),
        (4, 4, Some("done"))
    );
    let dispatching = rig.messages().await[1].clone();
    assert_eq!(
        dispatching.usage().map(|usage| usage.total_tokens),
        Some(110 + 36),
        "in the format of clients"
    );
    assert!(dispatching.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED));
}

#[tokio::test]
async fn message_subscribers_receive_no_nested_messages() {
    let rig = rig(json!({}));
    let observed = rig
        .observe(delegate([task("then say a b c d e f g h")]))
        .await;
    assert!((1..12).contains(&observed.pieces), "{}", observed.pieces);
    let texts: Vec<String> = rig
        .messages()
        .await
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(
        texts.len(),
        4,
        "the thread contains only the result: {texts:?}"
    );
}

#[tokio::test]
async fn journal_separates_task_steps_from_the_conversation() {
    let rig = rig(json!({}));
    rig.observe(delegate([task(LOOKUP)])).await;
    let rows = rig.rows("subagent").await;
    let types: Vec<&str> = rows.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        types,
        [
            "subagent.start",
            "subagent.step",
            "subagent.step",
            "subagent.step",
            "subagent.end"
        ]
    );
    assert_eq!(
        (
            &rows[1].1["tool_calls"][0]["name"],
            &rows[2].1["tool_name"],
            &rows[3].1["text"]
        ),
        (&json!("look"), &json!("look"), &json!("found it"))
    );
    assert_eq!(
        (
            &rows[4].1["status"],
            &rows[4].1["result"],
            &rows[4].1["usage"]["total_tokens"]
        ),
        (&json!("completed"), &json!("found it"), &json!(36))
    );
    assert_eq!(rig.rows("message").await.len(), 4);
}
