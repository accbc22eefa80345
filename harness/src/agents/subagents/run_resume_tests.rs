//! Tests of tasks that resume after a question or a takeover.

use super::*;
use crate::runtime::runs::NodeLifecycle;

#[tokio::test]
async fn interrupted_task_resumes_with_the_answer() {
    let rig = rig(json!({}));
    let interrupted = rig
        .observe(delegate([task(
            "[[usage 11,7]] [[tool:asking {}]] then say thanks",
        )]))
        .await;
    assert_eq!(
        interrupted.types(None),
        ["task_started", "task_running"],
        "it has not ended"
    );
    assert!(rig.results().await.is_empty());
    let answered = rig
        .observe(RunRequest {
            input: RunInput::Resume(json!("red")),
            ..delegate([])
        })
        .await;
    assert_eq!(
        answered.types(None),
        [
            "task_started",
            "task_running",
            "task_running",
            "task_completed"
        ]
    );
    assert_eq!(answered.progress[1]["message"]["content"], "\"red\"");
    let result = rig.results().await.remove(0);
    assert_eq!(result.content.text(), "Task Succeeded. Result: thanks");
    assert_eq!(
        result.additional_kwargs["subagent_token_usage"]["total_tokens"], 36,
        "of both runs"
    );
    let counts = [
        rig.record(&interrupted.run)
            .await
            .completion
            .subagent_tokens,
        rig.record(&answered.run).await.completion.subagent_tokens,
    ];
    assert_eq!(counts, [18, 18]);
}

#[tokio::test(start_paused = true)]
async fn takeover_resumes_subagents() {
    let rig = rig(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 1}}}),
    );
    let hang = r#"[[usage 11,7]] [[tool:look {"at":"first"}]] [[tool:look {"at":"second","hang":true}]] then say went on"#;
    let capped = json!({"description": "d", "prompt": LOOKUP, "subagent_type": "brief"});
    let run = rig
        .runs
        .create_background(delegate([task(LOOKUP), task(hang), capped]))
        .await
        .unwrap();
    rig.shared.hanging.notified().await;
    // Results of the other tasks are durable as soon as the run only waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.shared.restarted.store(true, Ordering::SeqCst);
    rig.ports().tasks.token().cancel();
    let next = Rig {
        shared: rig.shared.clone(),
        runs: process(rig.ports().clone()),
    };
    let node = NodeLifecycle::new(next.runs.runtime());
    assert_eq!(node.recover().await.unwrap(), 1);
    next.runs.join_wait(None, &run.run_id).await.unwrap();
    let ended = next.record(&run.run_id).await;
    assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
    let texts: Vec<String> = next
        .results()
        .await
        .iter()
        .map(|result| result.content.text())
        .collect();
    assert_eq!(
        texts[..2],
        [
            "Task Succeeded. Result: found it",
            "Task Succeeded. Result: went on"
        ]
    );
    assert!(
        texts[2].starts_with("Task failed"),
        "its turns stay used up: {texts:?}"
    );
    let mut lookups = next.shared.lookups.lock().clone();
    lookups.sort();
    assert_eq!(
        lookups,
        ["a", "first", "second", "second"],
        "only the interrupted call is repeated"
    );
    let usage = |result: &Message| {
        result.additional_kwargs["subagent_token_usage"]["total_tokens"].as_u64()
    };
    let results = next.results().await;
    assert_eq!(
        (usage(&results[0]), usage(&results[1])),
        (Some(36), Some(54))
    );
    let done = ended.completion;
    assert_eq!(
        (done.subagent_tokens, done.lead_agent_tokens),
        (36 + 54, 220),
        "every model call is counted once"
    );
}
