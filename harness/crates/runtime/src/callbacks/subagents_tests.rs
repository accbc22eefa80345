//! Tests of the journal rows of subagents.

use super::*;
use crate::agent::TokenCount;
use deerflow_core::messages::{ToolCall, ToolStatus};

fn event(task: &str, update: SubagentUpdate) -> SubagentEvent {
    let usage = TokenCount {
        input_tokens: 2,
        output_tokens: 1,
        total_tokens: 3,
    };
    SubagentEvent {
        task_id: task.to_owned(),
        model_name: "m".to_owned(),
        usage,
        news: update,
    }
}

fn message_update(message: Message, index: usize) -> SubagentUpdate {
    SubagentUpdate::Said {
        message,
        index,
        total: index,
    }
}

#[test]
fn each_subagent_event_has_its_row() {
    let (kind, content, metadata) = row(&event(
        "c",
        SubagentUpdate::Started {
            description: "look".to_owned(),
        },
    ));
    assert_eq!(
        (kind, content),
        (
            "subagent.start",
            json!({"task_id": "c", "description": "look"})
        )
    );
    assert_eq!(Value::from(metadata), json!({"task_id": "c"}));
    let call = ToolCall::new("t", "ls", Map::from_iter([("path".to_owned(), json!("/"))]));
    let with_calls = Message::ai("I look").with(|body| {
        let MessageKind::Ai { tool_calls, .. } = &mut body.kind else {
            return;
        };
        tool_calls.push(call.clone());
    });
    let (kind, content, metadata) = row(&event("c", message_update(with_calls, 1)));
    let expected = json!({
        "task_id": "c", "message_index": 1, "kind": "ai", "text": "I look", "truncated": false,
        "tool_calls": [{"name": "ls", "args": {"path": "/"}}],
    });
    assert_eq!((kind, content), ("subagent.step", expected));
    assert_eq!(metadata["message_index"], 1);
    let (_, content, _) = row(&event(
        "c",
        message_update(
            Message::tool(&call, "x".repeat(9_000), ToolStatus::Success),
            2,
        ),
    ));
    assert_eq!(
        (
            &content["tool_name"],
            &content["kind"],
            &content["truncated"]
        ),
        (&json!("ls"), &json!("tool"), &json!(true))
    );
    assert_eq!(content["text"].as_str().unwrap().len(), MAX_TEXT_CHARS);
    let (kind, content, _) = row(&event(
        "c",
        SubagentUpdate::Ended {
            status: SubagentStatus::TimedOut,
            text: "late".to_owned(),
        },
    ));
    let usage = json!({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3});
    let expected = json!({"task_id": "c", "status": "timed_out", "model_name": "m", "usage": usage, "error": "late"});
    assert_eq!((kind, content), ("subagent.end", expected));
}

#[test]
fn invalid_tool_calls_are_journaled_verbatim() {
    let with_calls = Message::coerce(json!({
        "type": "ai", "content": "",
        "invalid_tool_calls": [{"id": "t", "name": "pay", "args": "{\"what", "error": "no JSON"}],
    }));
    let (_, content, _) = row(&event("c", message_update(with_calls.unwrap(), 1)));
    assert_eq!(
        (&content["invalid_tool_calls"], &content["tool_calls"]),
        (&json!([{"name": "pay", "args": "{\"what"}]), &json!([]))
    );
}

#[test]
fn long_arguments_are_truncated() {
    let args = Map::from_iter([("content".to_owned(), json!("é".repeat(9_000)))]);
    let encoded = encode_call("write_file", &args);
    assert_eq!(encoded["args_truncated"], true);
    assert!(
        encoded["args"]
            .as_str()
            .unwrap()
            .starts_with("{\"content\":\"éé")
    );
}

#[test]
fn only_running_subagents_are_cancelled() {
    let mut open = OpenSubagents::default();
    for task in ["a", "b"] {
        open.on_event(&event(
            task,
            SubagentUpdate::Started {
                description: String::new(),
            },
        ));
        open.on_event(&event(task, message_update(Message::ai("x"), 1)));
    }
    open.on_event(&event(
        "a",
        SubagentUpdate::Ended {
            status: SubagentStatus::Completed,
            text: String::new(),
        },
    ));
    let cancelled = open.cancelled();
    assert_eq!(
        cancelled
            .iter()
            .map(|event| event.task_id.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );
    assert!(matches!(
        cancelled[0].news,
        SubagentUpdate::Ended {
            status: SubagentStatus::Cancelled,
            ..
        }
    ));
}
