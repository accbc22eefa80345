//! Runs whose agent delegates tasks to subagents, as the web UI displays them.

use deerflow_tests::scripted_openai::RecordedRequest;
use serde_json::{Value, json};

use crate::rig::{FinishedRun, MODEL, Rig, body_with, list, message_text, text};

/// Configuration of a subagent that can only list folders.
const LISTER_SUBAGENT: &str = "subagents:
  custom_agents:
    lister:
      description: lists folders
      system_prompt: You list folders and say what is in them.
      tools: [ls, task]
";

/// Runs an agent that delegates one task, which lists a folder; every model call of the task uses
/// 11 and 7 tokens.
async fn run_with_subagent(rig: &Rig, kind: &str) -> FinishedRun {
    let prompt = r#"[[usage 11,7]] [[tool:ls {"description": "look", "path": "/mnt/user-data/workspace"}]] then say nothing there"#;
    let args = json!({"description": "list the folder", "prompt": prompt, "subagent_type": kind});
    let words = format!("[[usage 100,10]] [[tool:task {args}]] then say all done");
    let more = json!({"context": {"model_name": MODEL, "thinking_enabled": false, "subagent_enabled": true}});
    let thread = rig.thread().await;
    rig.run(&thread, &body_with(&words, more)).await
}

/// Summarises a stream in order: the type of each message or custom event.
fn frame_summary(run: &FinishedRun) -> Vec<String> {
    let mut frame_summary: Vec<String> = Vec::new();
    for frame in &run.frames {
        let data: Value = frame.json().unwrap_or_default();
        let line = match frame.name() {
            "custom" => text(&data["type"]).to_owned(),
            "messages" => text(&data[0]["type"]).to_owned(),
            _ => continue,
        };
        if frame_summary.last() != Some(&line) {
            frame_summary.push(line);
        }
    }
    frame_summary
}

fn system(request: &RecordedRequest) -> String {
    message_text(&request.messages[0])
}

#[tokio::test]
async fn task_frames_match_web_ui_cards() {
    let rig = Rig::start().await;
    let run = run_with_subagent(&rig, "general-purpose").await;
    assert_eq!(
        frame_summary(&run),
        [
            "human",
            "AIMessageChunk",
            "task_started",
            "task_running",
            "task_completed",
            "tool",
            "AIMessageChunk"
        ],
        "{:?}",
        run.names()
    );
    assert!(
        run.names().iter().all(|name| !name.contains('|')),
        "subgraphs were not requested"
    );
    let values = run.last_values();
    let messages = list(&values["messages"]);
    let calls = list(&messages[1]["tool_calls"]);
    let updates = run.data("custom");
    assert!(
        updates
            .iter()
            .all(|updates| updates["task_id"] == calls[0]["id"] && updates["model_name"] == MODEL)
    );
    assert_eq!(updates[0]["description"], "list the folder");
    let steps: Vec<_> = updates[1..4]
        .iter()
        .map(|updates| {
            (
                text(&updates["message"]["type"]),
                updates["message_index"].clone(),
            )
        })
        .collect();
    assert_eq!(
        steps,
        [("ai", json!(1)), ("tool", json!(2)), ("ai", json!(3))]
    );
    assert_eq!(
        (
            &updates[1]["message"]["tool_calls"][0]["name"],
            &updates[3]["message"]["content"]
        ),
        (&json!("ls"), &json!("nothing there"))
    );
    let usage = json!({"input_tokens": 22, "output_tokens": 14, "total_tokens": 36});
    assert_eq!(
        (&updates[4]["result"], &updates[4]["usage"]),
        (&json!("nothing there"), &usage)
    );

    let result = &messages[2];
    assert_eq!(
        (message_text(result).as_str(), &result["name"]),
        ("Task Succeeded. Result: nothing there", &json!("task"))
    );
    let marks = &result["additional_kwargs"];
    assert_eq!(
        (&marks["subagent_status"], &marks["subagent_token_usage"]),
        (&json!("completed"), &usage)
    );
    assert_eq!(
        (
            &marks["subagent_result_brief"],
            &marks["subagent_model_name"]
        ),
        (&json!("nothing there"), &json!(MODEL))
    );
    assert_eq!(
        messages.len(),
        4,
        "messages of a task are not part of the thread"
    );
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn task_tokens_are_counted_once_and_separately() {
    let rig = Rig::start().await;
    let run = run_with_subagent(&rig, "general-purpose").await;
    let stored = rig.get_run(&run.thread, &run.run).await;
    assert_eq!(stored["status"], "success");
    assert_eq!(
        (
            &stored["subagent_tokens"],
            &stored["lead_agent_tokens"],
            &stored["total_tokens"]
        ),
        (&json!(36), &json!(220), &json!(256))
    );
    assert_eq!(stored["llm_call_count"], rig.model.requests().len());
    let usage = rig
        .get(&format!("/api/threads/{}/token-usage", run.thread))
        .await
        .ok();
    assert_eq!(
        (&usage["by_caller"]["subagent"], &usage["total_tokens"]),
        (&json!(36), &json!(256))
    );
}

#[tokio::test]
async fn task_steps_are_readable_but_not_thread_messages() {
    let rig = Rig::start().await;
    let run = run_with_subagent(&rig, "general-purpose").await;
    let task = run.data("custom")[0]["task_id"].clone();
    let events = format!("/api/threads/{}/runs/{}/events", run.thread, run.run);
    let steps = rig
        .get(&format!(
            "{events}?event_types=subagent.step&task_id={}",
            text(&task)
        ))
        .await
        .ok();
    let kinds: Vec<&str> = list(&steps)
        .iter()
        .map(|row| text(&row["content"]["kind"]))
        .collect();
    assert_eq!(kinds, ["ai", "tool", "ai"]);
    let all = rig
        .get(&format!("{events}?event_types=subagent.start,subagent.end"))
        .await
        .ok();
    let types: Vec<&str> = list(&all)
        .iter()
        .map(|row| text(&row["event_type"]))
        .collect();
    assert_eq!(types, ["subagent.start", "subagent.end"]);
    assert!(
        list(&all)
            .iter()
            .all(|row| row["category"] == "subagent" && row["metadata"]["task_id"] == task)
    );
    let page = rig
        .get(&format!("/api/threads/{}/messages/page", run.thread))
        .await
        .ok();
    let kinds: Vec<&str> = list(&page["data"])
        .iter()
        .map(|row| text(&row["content"]["type"]))
        .collect();
    assert_eq!(kinds, ["human", "ai", "tool", "ai"]);
}

#[tokio::test]
async fn configured_subagent_uses_its_own_prompt_and_tools() {
    let rig = Rig::with(LISTER_SUBAGENT).await;
    let run = run_with_subagent(&rig, "lister").await;
    assert_eq!(
        run.data("custom").last().expect("news")["type"],
        "task_completed"
    );
    let requests = rig.model.requests();
    let (lead, task) = (&requests[0], &requests[1]);
    assert!(
        system(lead).contains("- lister: lists folders")
            && system(lead).contains("- general-purpose: "),
        "{}",
        system(lead)
    );
    assert!(!system(lead).contains("- bash: "), "commands cannot be run");
    assert!(lead.tools.iter().any(|tool| tool == "task"));
    assert!(
        system(task).starts_with("You list folders and say what is in them."),
        "{}",
        system(task)
    );
    assert_eq!(task.tools, ["ls"], "and no task tool");
}

#[tokio::test]
async fn task_tool_is_not_offered_without_subagent_enabled() {
    let rig = Rig::with(LISTER_SUBAGENT).await;
    let run = rig.run_prompt("then say hi").await;
    assert_eq!(run.data("custom"), [] as [Value; 0]);
    let request = &rig.model.requests()[0];
    assert!(
        !request.tools.iter().any(|tool| tool == "task")
            && !system(request).contains("subagent_system")
    );
}
