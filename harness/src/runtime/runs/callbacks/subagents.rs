//! What of a run's subagents is journaled, and which of them have not come to their end.

use serde_json::{Map, Value, json};

use crate::messages::{InvalidToolCall, Message, MessageKind};
use crate::runtime::agent::{SubagentEvent, SubagentNews, SubagentStatus};

/// The longest text of a row, in characters.
const MAX_TEXT_CHARS: usize = 8_192;
/// Why a subagent ended whose run was stopped.
const STOPPED: &str = "the run ended before the task did";

/// The subagents under way, each as it was last heard of.
#[derive(Debug, Default)]
pub(crate) struct OpenSubagents(Vec<SubagentEvent>);

impl OpenSubagents {
    pub(crate) fn hear(&mut self, event: &SubagentEvent) {
        self.0.retain(|open| open.task_id != event.task_id);
        if !matches!(event.news, SubagentNews::Ended { .. }) {
            self.0.push(event.clone());
        }
    }

    /// How those end whose run is stopped.
    pub(crate) fn cut(&self) -> Vec<SubagentEvent> {
        let ended = || SubagentNews::Ended {
            status: SubagentStatus::Cancelled,
            text: STOPPED.to_owned(),
        };
        self.0
            .iter()
            .map(|open| SubagentEvent {
                news: ended(),
                ..open.clone()
            })
            .collect()
    }
}

/// A row of the journal: its type, its content, and what it can be found by.
pub(crate) fn row(event: &SubagentEvent) -> (&'static str, Value, Map<String, Value>) {
    let mut found_by = Map::from_iter([("task_id".to_owned(), json!(event.task_id))]);
    let mut content = found_by.clone();
    let kind = match &event.news {
        SubagentNews::Started { description } => {
            content.insert("description".to_owned(), clipped(description).0.into());
            "subagent.start"
        }
        SubagentNews::Said { message, index, .. } => {
            content.insert("message_index".to_owned(), json!(index));
            found_by.insert("message_index".to_owned(), json!(index));
            content.extend(step(message));
            "subagent.step"
        }
        SubagentNews::Ended { status, text } => {
            content.insert("status".to_owned(), json!(status));
            content.insert("model_name".to_owned(), json!(event.model_name));
            if !event.usage.is_zero() {
                content.insert("usage".to_owned(), json!(event.usage));
            }
            let (text, is_cut) = clipped(text);
            content.insert(status.text_key().to_owned(), text.into());
            if is_cut {
                content.insert(format!("{}_truncated", status.text_key()), true.into());
            }
            "subagent.end"
        }
    };
    (kind, content.into(), found_by)
}

fn step(message: &Message) -> Map<String, Value> {
    let (text, is_cut) = clipped(&message.content.text());
    let mut fields = Map::from_iter([
        ("kind".to_owned(), json!(message.type_name())),
        ("text".to_owned(), text.into()),
        ("truncated".to_owned(), is_cut.into()),
    ]);
    match &message.kind {
        MessageKind::Tool { .. } => fields.insert("tool_name".to_owned(), json!(message.name)),
        kind => {
            let unreadable = if let MessageKind::Ai {
                invalid_tool_calls, ..
            } = kind
            {
                invalid_tool_calls.as_slice()
            } else {
                &[]
            };
            if !unreadable.is_empty() {
                fields.insert(
                    "invalid_tool_calls".to_owned(),
                    unreadable.iter().map(misspelled).collect(),
                );
            }
            fields.insert(
                "tool_calls".to_owned(),
                message
                    .tool_calls()
                    .iter()
                    .map(|call| called(&call.name, &call.args))
                    .collect(),
            )
        }
    };
    fields
}

fn misspelled(call: &InvalidToolCall) -> Value {
    match clipped(call.args.as_deref().unwrap_or_default()) {
        (args, false) => json!({ "name": call.name, "args": args }),
        (beginning, true) => {
            json!({ "name": call.name, "args": beginning, "args_truncated": true })
        }
    }
}

/// Arguments that are too long are the beginning of their text.
fn called(name: &str, args: &Map<String, Value>) -> Value {
    let written = Value::Object(args.clone()).to_string();
    match clipped(&written) {
        (_, false) => json!({ "name": name, "args": args }),
        (beginning, true) => json!({ "name": name, "args": beginning, "args_truncated": true }),
    }
}

fn clipped(text: &str) -> (String, bool) {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ToolCall, ToolStatus};
    use crate::runtime::agent::TokenCount;

    fn event(task: &str, news: SubagentNews) -> SubagentEvent {
        let usage = TokenCount {
            input_tokens: 2,
            output_tokens: 1,
            total_tokens: 3,
        };
        SubagentEvent {
            task_id: task.to_owned(),
            model_name: "m".to_owned(),
            usage,
            news,
        }
    }

    fn said(message: Message, index: usize) -> SubagentNews {
        SubagentNews::Said {
            message,
            index,
            total: index,
        }
    }

    #[test]
    fn each_kind_of_news_has_its_row() {
        let (kind, content, found_by) = row(&event(
            "c",
            SubagentNews::Started {
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
        assert_eq!(Value::from(found_by), json!({"task_id": "c"}));
        let call = ToolCall::new("t", "ls", Map::from_iter([("path".to_owned(), json!("/"))]));
        let asking = Message::ai("I look").with(|body| {
            let MessageKind::Ai { tool_calls, .. } = &mut body.kind else {
                return;
            };
            tool_calls.push(call.clone());
        });
        let (kind, content, found_by) = row(&event("c", said(asking, 1)));
        let expected = json!({
            "task_id": "c", "message_index": 1, "kind": "ai", "text": "I look", "truncated": false,
            "tool_calls": [{"name": "ls", "args": {"path": "/"}}],
        });
        assert_eq!((kind, content), ("subagent.step", expected));
        assert_eq!(found_by["message_index"], 1);
        let (_, content, _) = row(&event(
            "c",
            said(
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
            SubagentNews::Ended {
                status: SubagentStatus::TimedOut,
                text: "late".to_owned(),
            },
        ));
        let usage = json!({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3});
        let expected = json!({"task_id": "c", "status": "timed_out", "model_name": "m", "usage": usage, "error": "late"});
        assert_eq!((kind, content), ("subagent.end", expected));
    }

    #[test]
    fn calls_that_cannot_be_read_are_told_as_they_were_written() {
        let asking = Message::coerce(json!({
            "type": "ai", "content": "",
            "invalid_tool_calls": [{"id": "t", "name": "pay", "args": "{\"what", "error": "no JSON"}],
        }));
        let (_, content, _) = row(&event("c", said(asking.unwrap(), 1)));
        assert_eq!(
            (&content["invalid_tool_calls"], &content["tool_calls"]),
            (&json!([{"name": "pay", "args": "{\"what"}]), &json!([]))
        );
    }

    #[test]
    fn long_arguments_are_told_by_their_beginning() {
        let args = Map::from_iter([("content".to_owned(), json!("é".repeat(9_000)))]);
        let told = called("write_file", &args);
        assert_eq!(told["args_truncated"], true);
        assert!(
            told["args"]
                .as_str()
                .unwrap()
                .starts_with("{\"content\":\"éé")
        );
    }

    #[test]
    fn only_those_under_way_are_cut() {
        let mut open = OpenSubagents::default();
        for task in ["a", "b"] {
            open.hear(&event(
                task,
                SubagentNews::Started {
                    description: String::new(),
                },
            ));
            open.hear(&event(task, said(Message::ai("x"), 1)));
        }
        open.hear(&event(
            "a",
            SubagentNews::Ended {
                status: SubagentStatus::Completed,
                text: String::new(),
            },
        ));
        let cut = open.cut();
        assert_eq!(
            cut.iter()
                .map(|event| event.task_id.as_str())
                .collect::<Vec<_>>(),
            ["b"]
        );
        assert!(matches!(
            cut[0].news,
            SubagentNews::Ended {
                status: SubagentStatus::Cancelled,
                ..
            }
        ));
    }
}
