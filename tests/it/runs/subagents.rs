//! Runs whose agent hands tasks to others, as the web UI follows them.

use deerflow_tests::scripted_openai::RecordedRequest;
use serde_json::{Value, json};

use crate::rig::{Finished, MODEL, Rig, body_with, list, text, words};

/// A kind of subagent that can only list folders.
const LISTER: &str = "subagents:
  custom_agents:
    lister:
      description: lists folders
      system_prompt: You list folders and say what is in them.
      tools: [ls, task]
";

/// Has the agent hand out one task, which lists a folder; every model call of the task costs 11 and 7 tokens.
async fn handed_out(rig: &Rig, kind: &str) -> Finished {
    let prompt = r#"[[usage 11,7]] [[tool:ls {"description": "look", "path": "/mnt/user-data/workspace"}]] then say nothing there"#;
    let args = json!({"description": "list the folder", "prompt": prompt, "subagent_type": kind});
    let words = format!("[[usage 100,10]] [[tool:task {args}]] then say all done");
    let more = json!({"context": {"model_name": MODEL, "thinking_enabled": false, "subagent_enabled": true}});
    let thread = rig.thread().await;
    rig.run(&thread, &body_with(&words, more)).await
}

/// What the stream tells in order: the type of a message, or of a custom event.
fn story(run: &Finished) -> Vec<String> {
    let mut story: Vec<String> = Vec::new();
    for frame in &run.frames {
        let data: Value = frame.json().unwrap_or_default();
        let line = match frame.name() {
            "custom" => text(&data["type"]).to_owned(),
            "messages" => text(&data[0]["type"]).to_owned(),
            _ => continue,
        };
        if story.last() != Some(&line) {
            story.push(line);
        }
    }
    story
}

fn system(request: &RecordedRequest) -> String {
    words(&request.messages[0])
}

#[tokio::test]
async fn the_frames_of_a_task_are_those_that_the_web_ui_makes_cards_of() {
    let rig = Rig::start().await;
    let run = handed_out(&rig, "general-purpose").await;
    assert_eq!(
        story(&run),
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
        "nobody asked for subgraphs"
    );
    let values = run.last_values();
    let messages = list(&values["messages"]);
    let calls = list(&messages[1]["tool_calls"]);
    let news = run.data("custom");
    assert!(
        news.iter()
            .all(|news| news["task_id"] == calls[0]["id"] && news["model_name"] == MODEL)
    );
    assert_eq!(news[0]["description"], "list the folder");
    let steps: Vec<_> = news[1..4]
        .iter()
        .map(|news| {
            (
                text(&news["message"]["type"]),
                news["message_index"].clone(),
            )
        })
        .collect();
    assert_eq!(
        steps,
        [("ai", json!(1)), ("tool", json!(2)), ("ai", json!(3))]
    );
    assert_eq!(
        (
            &news[1]["message"]["tool_calls"][0]["name"],
            &news[3]["message"]["content"]
        ),
        (&json!("ls"), &json!("nothing there"))
    );
    let usage = json!({"input_tokens": 22, "output_tokens": 14, "total_tokens": 36});
    assert_eq!(
        (&news[4]["result"], &news[4]["usage"]),
        (&json!("nothing there"), &usage)
    );

    let result = &messages[2];
    assert_eq!(
        (words(result).as_str(), &result["name"]),
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
        "what was said inside is no part of the conversation"
    );
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn tokens_of_tasks_are_counted_once_and_apart() {
    let rig = Rig::start().await;
    let run = handed_out(&rig, "general-purpose").await;
    let shown = rig.shown_run(&run.thread, &run.run).await;
    assert_eq!(shown["status"], "success");
    assert_eq!(
        (
            &shown["subagent_tokens"],
            &shown["lead_agent_tokens"],
            &shown["total_tokens"]
        ),
        (&json!(36), &json!(220), &json!(256))
    );
    assert_eq!(shown["llm_call_count"], rig.model.requests().len());
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
async fn the_steps_of_a_task_can_be_read_again_and_are_no_messages_of_the_thread() {
    let rig = Rig::start().await;
    let run = handed_out(&rig, "general-purpose").await;
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
async fn a_configured_kind_works_with_its_own_words_and_tools() {
    let rig = Rig::with(LISTER).await;
    let run = handed_out(&rig, "lister").await;
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
    assert_eq!(task.tools, ["ls"], "and no task of its own");
}

#[tokio::test]
async fn without_subagent_enabled_nobody_hears_of_tasks() {
    let rig = Rig::with(LISTER).await;
    let run = rig.say("then say hi").await;
    assert_eq!(run.data("custom"), [] as [Value; 0]);
    let request = &rig.model.requests()[0];
    assert!(
        !request.tools.iter().any(|tool| tool == "task")
            && !system(request).contains("subagent_system")
    );
}
