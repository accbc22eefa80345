//! The answer of a run, from the messages of its thread.

use harness::messages::Content;
use serde_json::Value;

use crate::platform::OUTPUTS;

/// Question of the agent that ended the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clarification {
    /// Text.
    pub(super) text: String,
    /// Offered answers.
    pub(super) options: Vec<String>,
}

/// Result of a run that its conversation sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RunAnswer {
    /// Text of the last assistant message with one.
    pub(super) text: Option<String>,
    /// Question, if the run ended with one after its last text.
    pub(super) question: Option<Clarification>,
    /// Virtual paths of presented files, in order, each once.
    pub(super) files: Vec<String>,
}

/// Messages of a thread that belong to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Span {
    /// Those after the human message with this id.
    Asked(String),
    /// Those of a resumed run, after the message with this id.
    Resumed(Option<String>),
}

/// Extracts the answer from the messages of a thread; `None` if the message before the span is not
/// among them. Hidden messages, tool results (other than a question) and reasoning are never part of
/// the answer.
pub(super) fn answer_of(messages: &[Value], span: &Span) -> Option<RunAnswer> {
    let before = match span {
        Span::Asked(id) => Some(id),
        Span::Resumed(after) => after.as_ref(),
    };
    let from = match before {
        Some(id) => {
            let has_id = |message: &Value| message["id"].as_str() == Some(id);
            messages.iter().rposition(has_id)? + 1
        }
        None => 0,
    };
    let of_run = messages[from..]
        .iter()
        .take_while(|message| !is_human(message) || is_hidden(message))
        .filter(|message| !is_hidden(message));
    let mut answer = RunAnswer::default();
    let mut presented: Vec<(String, Vec<String>)> = Vec::new();
    for message in of_run {
        if is_assistant(message) {
            let text = Content::text_in(&message["content"]);
            if !text.trim().is_empty() {
                answer.text = Some(text);
                answer.question = None;
            }
            presented.extend(presented_files(message));
        } else if let Some(question) = clarification(message) {
            answer.question = Some(question);
        } else if message["status"] != "error" {
            // The tool has checked the paths of a successful call.
            let call = message["tool_call_id"].as_str();
            let paths = presented.iter().find(|(id, _)| Some(id.as_str()) == call);
            for path in paths.into_iter().flat_map(|(_, paths)| paths) {
                if path.starts_with(OUTPUTS) && !answer.files.contains(path) {
                    answer.files.push(path.clone());
                }
            }
        }
    }
    Some(answer)
}

fn is_human(message: &Value) -> bool {
    message["type"].as_str() == Some("human")
}

fn is_assistant(message: &Value) -> bool {
    matches!(
        message["type"].as_str(),
        Some("ai" | "AIMessageChunk" | "assistant")
    )
}

fn is_hidden(message: &Value) -> bool {
    message["additional_kwargs"]["hide_from_ui"] == Value::Bool(true)
}

/// Returns the calls that present files, each with its id and paths.
fn presented_files(message: &Value) -> impl Iterator<Item = (String, Vec<String>)> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls
        .filter(|call| call["name"] == "present_files")
        .filter_map(|call| {
            let paths = call["args"]["filepaths"].as_array()?;
            let paths = paths.iter().filter_map(Value::as_str).map(str::to_owned);
            Some((call["id"].as_str()?.to_owned(), paths.collect()))
        })
}

fn clarification(message: &Value) -> Option<Clarification> {
    if message["type"] != "tool" {
        return None;
    }
    let request = &message["artifact"]["human_input"];
    if request["kind"] != "human_input_request" {
        return None;
    }
    let options = request["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["label"].as_str())
        .map(str::to_owned)
        .collect();
    Some(Clarification {
        text: Content::text_in(&message["content"]),
        options,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(id: &str) -> Span {
        Span::Asked(id.to_owned())
    }

    fn human(id: &str) -> Value {
        json!({"type": "human", "id": id, "content": "?"})
    }

    #[test]
    fn last_text_after_the_question_is_the_answer() {
        let messages = [
            human("h1"),
            json!({"type": "ai", "content": "old"}),
            human("h2"),
            json!({"type": "ai", "content": "working", "tool_calls": [
                {"id": "t1", "name": "present_files", "args": {"filepaths": ["/mnt/user-data/outputs/a", 3, "/mnt/user-data/workspace/b"]}},
                {"id": "t2", "name": "present_files", "args": {"filepaths": ["/mnt/user-data/outputs/c"]}},
                {"id": "t3", "name": "present_files", "args": {"filepaths": ["/mnt/user-data/outputs/d"]}},
            ]}),
            json!({"type": "tool", "tool_call_id": "t1", "content": "secret result", "status": "success"}),
            json!({"type": "tool", "tool_call_id": "t2", "content": "refused", "status": "error"}),
            json!({"type": "human", "content": "memory", "additional_kwargs": {"hide_from_ui": true}}),
            json!({"type": "ai", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "done"}]}),
            json!({"type": "ai", "content": "hidden", "additional_kwargs": {"hide_from_ui": true}}),
            human("h3"),
            json!({"type": "ai", "content": "later"}),
        ];
        let answer = answer_of(&messages, &asked("h2")).unwrap();
        assert_eq!(answer.text.as_deref(), Some("done"));
        assert_eq!(answer.files, ["/mnt/user-data/outputs/a"]);
    }

    #[test]
    fn answer_to_another_message_is_never_taken() {
        let messages = [human("h1"), json!({"type": "ai", "content": "old"})];
        assert_eq!(answer_of(&messages, &asked("h2")), None);
        assert_eq!(
            answer_of(&messages, &Span::Resumed(Some("m".to_owned()))),
            None
        );
        assert_eq!(answer_of(&[], &asked("h1")), None);
        let of_empty_thread = answer_of(&messages[1..], &Span::Resumed(None)).unwrap();
        assert_eq!(of_empty_thread.text.as_deref(), Some("old"));
    }

    #[test]
    fn question_counts_only_after_the_last_text() {
        let question = json!({"type": "tool", "content": "Which?", "artifact": {"human_input": {"kind": "human_input_request", "options": [{"label": "A"}, {"label": "B"}]}}});
        let text = json!({"type": "ai", "content": "text"});
        let answer = answer_of(&[human("h"), text.clone(), question.clone()], &asked("h")).unwrap();
        let expected = Clarification {
            text: "Which?".to_owned(),
            options: vec!["A".to_owned(), "B".to_owned()],
        };
        assert_eq!(answer.question, Some(expected));
        assert_eq!(
            answer_of(&[human("h"), question, text], &asked("h"))
                .unwrap()
                .question,
            None
        );
    }
}
