//! The run of the contract's section 10.3: a file is written and presented.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rig::{FinishedRun, Rig, body, list, text, visible_messages};

const REPORT: &str = "/mnt/user-data/outputs/report.md";

fn request() -> String {
    let write = json!({"description": "write", "path": REPORT, "content": "# R\n"});
    let present = json!({"filepaths": [REPORT]});
    format!(
        "Write a report [[tool:write_file {write}]][[tool:present_files {present}]] then say It is done."
    )
}

async fn tool_run(rig: &Rig) -> FinishedRun {
    rig.run_prompt(&request()).await
}

/// Summarises each frame in one line, without ids and times.
fn frame_summary(run: &FinishedRun) -> Vec<String> {
    let mut actual: Vec<String> = Vec::new();
    for frame in &run.frames {
        let data = frame.json().expect("json");
        let word = match frame.name() {
            "messages" => format!("messages {}", text(&data[0]["type"])),
            "updates" => match data
                .as_object()
                .and_then(|nodes| nodes.keys().next())
                .map(String::as_str)
            {
                Some(node @ ("model" | "tools" | "TitleMiddleware.after_model")) => {
                    format!("updates {node}")
                }
                // The set of middlewares that emit updates is an implementation detail.
                _ => continue,
            },
            "values" => {
                let last = data["messages"]
                    .as_array()
                    .and_then(|all| all.last())
                    .map(|last| text(&last["type"]).to_owned());
                format!("values {}", last.unwrap_or_default())
            }
            name => name.to_owned(),
        };
        if actual.last() != Some(&word) {
            actual.push(word);
        }
    }
    actual
}

#[tokio::test]
async fn frames_arrive_in_order_expected_by_web_ui() {
    let rig = Rig::start().await;
    let run = tool_run(&rig).await;
    let actual = frame_summary(&run);
    let mut remaining = actual.iter().map(String::as_str);
    for expected in [
        "metadata",
        "values human",
        "messages human",
        "messages AIMessageChunk",
        "updates model",
        "values ai",
        "messages tool",
        "updates tools",
        "values tool",
        "messages AIMessageChunk",
        "updates model",
        "values ai",
        "messages tool",
        "updates tools",
        "values tool",
        "messages AIMessageChunk",
        "updates model",
        "values ai",
        "end",
    ] {
        assert!(
            remaining.any(|word| word == expected),
            "{expected} is missing or late: {actual:#?}"
        );
    }
    let titles: Vec<Value> = run
        .data("updates")
        .into_iter()
        .filter_map(|update| update.get("TitleMiddleware.after_model").cloned())
        .collect();
    assert_eq!(
        titles
            .iter()
            .filter(|update| update["title"].is_string())
            .count(),
        1,
        "{titles:?}"
    );
    let title_at = actual
        .iter()
        .position(|word| word == "updates TitleMiddleware.after_model")
        .expect("a title");
    let tool_at = actual
        .iter()
        .position(|word| word == "messages tool")
        .expect("a tool");
    assert!(
        title_at < tool_at,
        "the title does not wait for tools: {actual:#?}"
    );
}

#[tokio::test]
async fn presented_file_is_an_artifact_and_can_be_fetched() {
    let rig = Rig::start().await;
    let run = tool_run(&rig).await;
    let values = run.last_values();
    assert_eq!(values["artifacts"], json!([REPORT]));
    let actual: Vec<String> = visible_messages(&values)
        .into_iter()
        .map(|(role, _)| role)
        .collect();
    assert_eq!(actual, ["human", "ai", "tool", "ai", "tool", "ai"]);
    let artifact = rig
        .get(&format!("/api/threads/{}/artifacts{REPORT}", run.thread))
        .await;
    assert_eq!(
        (artifact.status.as_u16(), artifact.text.as_str()),
        (200, "# R\n")
    );
}

#[tokio::test]
async fn calls_and_results_are_paired() {
    let rig = Rig::start().await;
    let run = tool_run(&rig).await;
    let messages = run.last_values()["messages"].clone();
    let messages = list(&messages);
    let calls: Vec<&Value> = messages
        .iter()
        .filter(|message| message["type"] == "ai")
        .flat_map(|ai| list(&ai["tool_calls"]))
        .collect();
    let results: Vec<&Value> = messages
        .iter()
        .filter(|message| message["type"] == "tool")
        .collect();
    assert_eq!(
        calls
            .iter()
            .map(|call| text(&call["name"]))
            .collect::<Vec<_>>(),
        ["write_file", "present_files"]
    );
    assert_eq!(calls[0]["args"]["path"], REPORT);
    for (call, result) in calls.iter().zip(&results) {
        assert_eq!(call["type"], "tool_call");
        assert_eq!(call["id"], result["tool_call_id"]);
        assert_eq!(call["name"], result["name"]);
        assert_eq!(result["status"], "success", "{result}");
        for field in [
            "content",
            "additional_kwargs",
            "response_metadata",
            "type",
            "name",
            "id",
            "tool_call_id",
            "artifact",
            "status",
        ] {
            assert!(result.get(field).is_some(), "{field}: {result}");
        }
    }
    assert_eq!(
        rig.model.rejections(),
        0,
        "a strict provider accepts the history"
    );
}

#[tokio::test]
async fn call_chunks_concatenate_to_its_arguments() {
    let rig = Rig::start().await;
    let run = rig.run_prompt(&format!("[[frag]]{}", request())).await;
    let first = run.chunks()[0]["id"].clone();
    let pieces: Vec<Value> = run
        .chunks()
        .iter()
        .filter(|chunk| chunk["id"] == first)
        .flat_map(|chunk| {
            chunk["tool_call_chunks"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    let args: String = pieces
        .iter()
        .filter_map(|piece| piece["args"].as_str())
        .collect();
    let written: Value = serde_json::from_str(&args).expect("arguments");
    assert_eq!(written["path"], REPORT);
    assert_eq!(pieces[0]["name"], "write_file");
    assert!(pieces[0]["id"].is_string());
    assert!(
        pieces
            .iter()
            .all(|piece| piece["index"] == pieces[0]["index"]),
        "{pieces:?}"
    );
    assert!(
        pieces[1..]
            .iter()
            .all(|piece| piece["name"].is_null() && piece["id"].is_null()),
        "{pieces:?}"
    );
}

#[tokio::test]
async fn message_has_the_same_id_everywhere() {
    let rig = Rig::start().await;
    let run = tool_run(&rig).await;
    let ids = |messages: &Value| -> BTreeSet<String> {
        let visible = list(messages)
            .iter()
            .filter(|message| message["type"] != "system");
        visible
            .map(|message| text(&message["id"]).to_owned())
            .collect()
    };
    let in_state = ids(&rig.values(&run.thread).await["messages"]);
    assert_eq!(in_state.len(), 6);
    assert_eq!(ids(&run.last_values()["messages"]), in_state);
    let history = rig
        .post(
            &format!("/api/threads/{}/history", run.thread),
            &json!({"limit": 1}),
        )
        .await
        .ok();
    assert_eq!(ids(&history[0]["values"]["messages"]), in_state);
    let streamed: BTreeSet<String> = run
        .data("messages")
        .iter()
        .map(|pair| text(&pair[0]["id"]).to_owned())
        .collect();
    assert_eq!(streamed, in_state);
    let page = rig
        .get(&format!("/api/threads/{}/messages/page", run.thread))
        .await
        .ok();
    let in_feed: BTreeSet<String> = list(&page["data"])
        .iter()
        .map(|row| text(&row["content"]["id"]).to_owned())
        .collect();
    assert_eq!(in_feed, in_state);
}

#[tokio::test]
async fn all_state_is_final_when_stream_ends() {
    let rig = Rig::start().await;
    let run = tool_run(&rig).await;
    let thread = &run.thread;
    assert_eq!(rig.get_run(thread, &run.run).await["status"], "success");
    let stored = rig.get(&format!("/api/threads/{thread}")).await.ok();
    assert_eq!(stored["status"], "idle");
    let title = stored["values"]["title"].clone();
    assert!(text(&title).starts_with("Write a report"), "{title}");
    let found = rig
        .post("/api/langgraph/threads/search", &json!({"limit": 50}))
        .await
        .ok();
    assert_eq!(
        (&found[0]["values"]["title"], &found[0]["status"]),
        (&title, &json!("idle"))
    );
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page?limit=50"))
        .await
        .ok();
    assert_eq!(
        (&page["has_more"], &page["next_before_seq"]),
        (&json!(false), &Value::Null)
    );
    let rows = list(&page["data"]);
    assert_eq!(rows.len(), 6);
    let seqs: Vec<u64> = rows
        .iter()
        .map(|row| row["seq"].as_u64().expect("a number"))
        .collect();
    assert!(seqs[0] >= 1 && seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert!(rows.iter().all(|row| row["run_id"] == *run.run));
    let usage = rig
        .get(&format!(
            "/api/threads/{thread}/token-usage?include_active=true"
        ))
        .await
        .ok();
    assert_eq!(usage["total_runs"], 1, "{usage}");
}

#[tokio::test]
async fn thread_can_be_patched_during_a_run() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig.background(&thread, &body("[[slow 1000x20ms]]")).await;
    rig.patch(
        &format!("/api/threads/{thread}"),
        &json!({"metadata": {"agent_name": "a"}}),
    )
    .await
    .ok();
    rig.post(
        &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1"),
        &json!({}),
    )
    .await;
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}")).await.ok()["metadata"]["agent_name"],
        "a"
    );
}
