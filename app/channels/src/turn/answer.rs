//! The answer of a run, from the messages of its thread.

use harness::messages::Content;
use serde_json::Value;

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

/// Extracts the answer from the messages of a thread. Only messages after the human message
/// `asked` count; without it, those after the last visible human message. Hidden messages, tool
/// results (other than a question) and reasoning are never part of it.
pub(super) fn answer_of(messages: &[Value], asked: Option<&str>) -> RunAnswer {
    let is_asked = |message: &Value| match asked {
        Some(id) => message["id"].as_str() == Some(id),
        None => is_human(message) && !is_hidden(message),
    };
    let Some(from) = messages.iter().rposition(is_asked).or_else(|| {
        messages
            .iter()
            .rposition(|message| is_human(message) && !is_hidden(message))
    }) else {
        return RunAnswer::default();
    };
    let span = messages[from + 1..]
        .iter()
        .take_while(|message| !is_human(message) || is_hidden(message))
        .filter(|message| !is_hidden(message));
    let mut answer = RunAnswer::default();
    for message in span {
        if is_assistant(message) {
            let text = Content::text_in(&message["content"]);
            if !text.trim().is_empty() {
                answer.text = Some(text);
                answer.question = None;
            }
            presented_files(message, &mut answer.files);
        } else if let Some(question) = clarification(message) {
            answer.question = Some(question);
        }
    }
    answer
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

fn presented_files(message: &Value, files: &mut Vec<String>) {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    for call in calls.filter(|call| call["name"] == "present_files") {
        let paths = call["args"]["filepaths"].as_array().into_iter().flatten();
        for path in paths.filter_map(Value::as_str) {
            if !files.iter().any(|known| known == path) {
                files.push(path.to_owned());
            }
        }
    }
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

    fn human(id: &str) -> Value {
        json!({"type": "human", "id": id, "content": "?"})
    }

    #[test]
    fn last_text_after_the_question_is_the_answer() {
        let messages = [
            human("h1"),
            json!({"type": "ai", "content": "old"}),
            human("h2"),
            json!({"type": "ai", "content": "working", "tool_calls": [{"name": "present_files", "args": {"filepaths": ["/mnt/user-data/outputs/a", 3]}}]}),
            json!({"type": "tool", "content": "secret result"}),
            json!({"type": "human", "content": "memory", "additional_kwargs": {"hide_from_ui": true}}),
            json!({"type": "ai", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "done"}]}),
            json!({"type": "ai", "content": "hidden", "additional_kwargs": {"hide_from_ui": true}}),
            human("h3"),
            json!({"type": "ai", "content": "later"}),
        ];
        let answer = answer_of(&messages, Some("h2"));
        assert_eq!(answer.text.as_deref(), Some("done"));
        assert_eq!(answer.files, ["/mnt/user-data/outputs/a"]);
        assert_eq!(answer_of(&messages, None).text.as_deref(), Some("later"));
    }

    #[test]
    fn question_counts_only_after_the_last_text() {
        let question = json!({"type": "tool", "content": "Which?", "artifact": {"human_input": {"kind": "human_input_request", "options": [{"label": "A"}, {"label": "B"}]}}});
        let text = json!({"type": "ai", "content": "text"});
        let asked = answer_of(&[human("h"), text.clone(), question.clone()], Some("h"));
        let expected = Clarification {
            text: "Which?".to_owned(),
            options: vec!["A".to_owned(), "B".to_owned()],
        };
        assert_eq!(asked.question, Some(expected));
        assert_eq!(
            answer_of(&[human("h"), question, text], Some("h")).question,
            None
        );
    }

    #[test]
    fn thread_without_messages_has_no_answer() {
        assert_eq!(answer_of(&[], Some("h")), RunAnswer::default());
    }
}
