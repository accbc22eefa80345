//! Requests of runs with a scripted answer, and the messages of a thread.

use std::time::Duration;

use serde_json::{Value, json};

/// Returns the body of a run with the prompt `words` that continues when its viewer disconnects.
pub(crate) fn body(words: &str) -> Value {
    json!({
        "assistant_id": "lead_agent",
        "input": {"messages": [{"type": "human", "content": words}]},
        "context": {"model_name": "fake", "mode": "flash"},
        "stream_mode": ["values", "messages-tuple"],
        "stream_resumable": true,
        "on_disconnect": "continue",
    })
}

/// Answer whose every word is unique, and the prompt that makes the model stream it.
#[derive(Debug, Clone)]
pub(crate) struct ScriptedReply {
    pub(crate) text: String,
    pub(crate) prompt: String,
}

impl ScriptedReply {
    pub(crate) fn new(name: &str, words: usize, gap: Duration) -> Self {
        let text = (0..words)
            .map(|word| format!("{name}-{word:04}"))
            .collect::<Vec<_>>()
            .join(" ");
        let prompt = format!("[[slow {words}x{}ms]] then say {text}", gap.as_millis());
        Self { text, prompt }
    }

    /// Adds a tool call before the answer, whose result is a checkpoint to resume from.
    pub(crate) fn after_a_tool(mut self) -> Self {
        self.prompt = format!(
            "[[tool:ls {{\"description\": \"look\", \"path\": \"/mnt/user-data/workspace\"}}]] {}",
            self.prompt
        );
        self
    }

    /// Makes the answer stop after this many words until the model is released.
    pub(crate) fn held_after(mut self, words: usize) -> Self {
        self.prompt = format!("[[hold {words}]] {}", self.prompt);
        self
    }

    /// Asserts that the thread consists of the question, one result of each call, and one answer.
    #[track_caller]
    pub(crate) fn assert_matches(&self, transcript: &[(String, String)]) {
        let results = transcript.iter().filter(|(role, _)| role == "tool").count();
        assert_eq!(
            results,
            self.prompt.matches("[[tool:").count(),
            "{transcript:?}"
        );
        let words: Vec<_> = transcript
            .iter()
            .filter(|(role, words)| role != "tool" && !words.is_empty())
            .cloned()
            .collect();
        assert_eq!(words, self.visible_messages());
    }

    /// Returns the messages of its thread if the run succeeded without a tool call.
    pub(crate) fn visible_messages(&self) -> Vec<(String, String)> {
        vec![
            ("human".to_owned(), self.prompt.clone()),
            ("ai".to_owned(), self.text.clone()),
        ]
    }
}

/// Returns the messages of a state as (type, text).
pub(crate) fn messages(values: &Value) -> Vec<(String, String)> {
    let messages = values["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let visible = messages.iter().filter(|message| {
        message["type"] != "system" && message["additional_kwargs"]["hide_from_ui"] != true
    });
    visible
        .map(|message| (text(&message["type"]).to_owned(), words(message)))
        .collect()
}

/// Returns the text of a message, whichever form its content has.
pub(crate) fn words(message: &Value) -> String {
    match &message["content"] {
        Value::String(words) => words.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// Returns a JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
}
