//! Tests of the limits of tasks: number, time, turns and tokens, and of a cancel.

use super::*;

#[tokio::test(start_paused = true)]
async fn tasks_beyond_the_limit_are_dropped() {
    let rig = rig(json!({"max_running": 1}));
    let slow = task(&format!("[[delay 10]] {LOOKUP}"));
    let observed = rig
        .observe(delegate([
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow,
        ]))
        .await;
    let results = rig.results().await;
    assert_eq!(results.len(), 3);
    assert_eq!(
        observed.types(None)[..3],
        ["task_started"; 3],
        "all tasks are announced before the first one starts"
    );
    let ended: Vec<usize> = (0..observed.progress.len())
        .filter(|at| observed.progress[*at]["type"] == "task_completed")
        .collect();
    let first_updates: Vec<usize> = (0..observed.progress.len())
        .filter(|at| observed.progress[*at]["message_index"] == 1)
        .collect();
    assert!(
        ended[0] < first_updates[1] && ended[1] < first_updates[2],
        "only one task is active at a time"
    );
    let order: Vec<&Value> = results
        .iter()
        .map(|result| &result.additional_kwargs["subagent_status"])
        .collect();
    assert_eq!(order, ["completed"; 3]);
    let done = rig.record(&observed.run).await.completion;
    assert_eq!(
        (done.subagent_tokens, done.lead_agent_tokens),
        (3 * 36, 220)
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_subagents_at_once() {
    let rig = rig(json!({}));
    let hang = r#"[[tool:look {"at":"a","hang":true}]]"#;
    let (record, stream) = rig
        .runs
        .create_and_stream(
            delegate([task(hang), task(LOOKUP)]),
            Duration::from_secs(60),
        )
        .await
        .unwrap();
    rig.shared.hanging.notified().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.runs
        .cancel(None, &record.run_id, CancelAction::Interrupt, true)
        .await
        .unwrap();
    assert_eq!(rig.shared.active_calls.load(Ordering::SeqCst), 0);
    let observed = collect(record, stream).await;
    let ends: Vec<&str> = observed
        .types(None)
        .into_iter()
        .filter(|kind| !matches!(*kind, "task_started" | "task_running"))
        .collect();
    assert_eq!(ends, ["task_completed", "task_cancelled"]);
    let last = rig.rows("subagent").await.pop().unwrap();
    assert_eq!(
        (last.0.as_str(), &last.1["status"]),
        ("subagent.end", &json!("cancelled"))
    );
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens > 36),
        (RunStatus::Interrupted, true),
        "the earlier usage stays counted"
    );
    let next = rig.observe(ask("then say better")).await;
    assert_eq!(rig.record(&next.run).await.status, RunStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn task_timeout_does_not_end_the_run() {
    let rig = rig(json!({"agents": {"general-purpose": {"timeout_seconds": 5}}}));
    let observed = rig
        .observe(delegate([
            task(r#"[[usage 11,7]] [[tool:look {"at":"a","hang":true}]]"#),
            task(LOOKUP),
        ]))
        .await;
    let results = rig.results().await;
    assert!(
        results[0]
            .content
            .text()
            .starts_with("Task timed out. Error: it was not done after 5 seconds"),
        "{:?}",
        results[0]
    );
    assert_eq!(results[0].additional_kwargs["subagent_status"], "timed_out");
    assert_eq!(
        results[1].content.text(),
        "Task Succeeded. Result: found it"
    );
    let of_first = observed.types(results[0].tool_call_id());
    assert_eq!(of_first, ["task_started", "task_running", "task_timed_out"]);
    assert_eq!(rig.shared.active_calls.load(Ordering::SeqCst), 0);
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens),
        (RunStatus::Success, 18 + 36)
    );
}

#[tokio::test]
async fn task_without_remaining_turns_returns_a_partial_result() {
    let rig = rig(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 9}}}),
    );
    let looking = r#"[[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] [[tool:look {"at":"d"}]]"#;
    let excerpt =
        json!({"description": "d", "prompt": looking, "subagent_type": "brief", "max_turns": 900});
    let observed = rig
        .observe(delegate([excerpt, json!({"description": "d", "prompt": "then say hi", "subagent_type": "brief", "max_turns": 1})]))
        .await;
    let results = rig.results().await;
    for result in &results {
        assert_eq!(
            result.content.text(),
            "Task failed. Error: it used up its turns before it had a result"
        );
    }
    assert!(
        (1..4).contains(&rig.shared.lookups.lock().len()),
        "no more turns than the kind allows"
    );
    assert_eq!(
        observed.types(results[0].tool_call_id()).last(),
        Some(&"task_failed")
    );
    assert_eq!(rig.record(&observed.run).await.status, RunStatus::Success);
}

#[tokio::test]
async fn task_over_its_token_budget_is_ended() {
    let rig = rig(json!({"token_budget": {"max_tokens": 1_000}}));
    let costly = r#"[[usage 500,100]] [[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] then say too late"#;
    let observed = rig.observe(delegate([task(costly)])).await;
    let result = rig.results().await.remove(0);
    assert!(
        result
            .content
            .text()
            .starts_with("Task Succeeded (cut short by its token budget). Result: "),
        "{result:?}"
    );
    assert_eq!(
        result.additional_kwargs["subagent_stop_reason"],
        "token_capped"
    );
    assert_eq!(rig.shared.lookups.lock().len(), 1);
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.completion.subagent_tokens, ended.stop_reason),
        (1_200, None),
        "the run itself has not been stopped"
    );
}
