//! A caller's request, and the next step of its script.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Body of a chat-completions call, as far as the scripted model reads it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChatRequest {
    /// The message history.
    #[serde(default)]
    pub(super) messages: Vec<Value>,
    /// `true` for a streamed response.
    #[serde(default)]
    pub(super) stream: bool,
    /// The requested model.
    pub(super) model: Option<String>,
    /// Everything else: tools, stream options, temperature and so on.
    #[serde(flatten)]
    pub(super) parameters: Map<String, Value>,
}

/// One recorded request.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// Text of the user that was parsed as a script.
    pub user: String,
    /// Index of the requested turn after that message, from 0.
    pub step: usize,
    /// `true` if a stream was requested.
    pub stream: bool,
    /// Names of the offered tools, sorted.
    pub tools: Vec<String>,
    /// Number of messages in the history.
    pub n_messages: usize,
    /// The requested model.
    pub model: Option<String>,
    /// Roles of the messages, in order.
    pub roles: Vec<String>,
    /// The messages as sent.
    pub messages: Vec<Value>,
    /// The rest of the body as sent.
    pub parameters: Map<String, Value>,
    /// The first 12 characters of the Authorization header.
    pub auth: String,
    /// Reason of strict mode's rejection.
    pub rejected: Option<String>,
}

/// Newest text of the user, and the number of turns since.
pub(super) struct ScriptMessage {
    pub(super) text: String,
    pub(super) step: usize,
}

impl ChatRequest {
    /// Finds the newest user message with text outside of `<tag>...</tag>` blocks.
    pub(super) fn script_message(&self) -> ScriptMessage {
        let mut script_message: Option<(usize, String)> = None;
        for (at, message) in self.messages.iter().enumerate().rev() {
            if message["role"] != "user" {
                continue;
            }
            let text = text_of(&message["content"]);
            let bare = without_tag_blocks(&text);
            if !bare.is_empty() {
                script_message = Some((at, bare));
                break;
            }
            script_message.get_or_insert((at, text));
        }
        let Some((at, text)) = script_message else {
            return ScriptMessage {
                text: String::new(),
                step: 0,
            };
        };
        let step = self.messages[at..]
            .iter()
            .filter(|message| message["role"] == "assistant")
            .count();
        ScriptMessage { text, step }
    }

    /// Returns the names of the tools that the model may call.
    pub(super) fn offered_tools(&self) -> BTreeSet<&str> {
        let tools = self.parameters.get("tools").and_then(Value::as_array);
        tools
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    /// Reports whether the stream must end with a chunk of token counts.
    pub(super) fn wants_usage(&self) -> bool {
        self.parameters
            .get("stream_options")
            .is_some_and(|options| options["include_usage"] == true)
    }

    /// Builds the record of this request.
    pub(super) fn record(
        &self,
        script_message: &ScriptMessage,
        authorization: &str,
        rejected: Option<String>,
    ) -> RecordedRequest {
        RecordedRequest {
            user: script_message.text.clone(),
            step: script_message.step,
            stream: self.stream,
            tools: self
                .offered_tools()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            n_messages: self.messages.len(),
            model: self.model.clone(),
            roles: self
                .messages
                .iter()
                .map(|message| message["role"].as_str().unwrap_or_default().to_owned())
                .collect(),
            messages: self.messages.clone(),
            parameters: self.parameters.clone(),
            auth: authorization.chars().take(12).collect(),
            rejected,
        }
    }

    /// Returns a number that depends on the messages only: the source of every id in the response.
    pub(super) fn fingerprint(&self) -> u64 {
        let text = Value::Array(self.messages.clone()).to_string();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part["text"].as_str()))
            .collect(),
        _ => String::new(),
    }
}

/// Returns `text` without its `<tag ...>...</tag>` blocks, trimmed.
fn without_tag_blocks(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let (before, tagged) = rest.split_at(open);
        kept.push_str(before);
        rest = match tag_block(tagged) {
            Some(length) => &tagged[length..],
            None => {
                kept.push('<');
                &tagged[1..]
            }
        };
    }
    kept.push_str(rest);
    let bare = kept.trim();
    // DeerFlow's markers around user input.
    let framed = bare
        .strip_prefix("--- BEGIN USER INPUT ---")
        .and_then(|text| text.strip_suffix("--- END USER INPUT ---"));
    framed.map_or(bare, str::trim).to_owned()
}

/// Returns the length of the block at the beginning of `text`.
fn tag_block(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let name_length = inner.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))?;
    let name = &inner[..name_length];
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        .then_some(())?;
    let content = 1 + name_length + inner[name_length..].find('>')? + 1;
    let close = format!("</{name}>");
    Some(content + text[content..].find(&close)? + close.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(messages: Value) -> ChatRequest {
        serde_json::from_value(json!({"messages": messages})).expect("a request")
    }

    #[test]
    fn newest_user_message_with_text_has_the_script() {
        let script_message = request(json!([
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": [{"type": "text", "text": "<memory a=1>[[hang]]</memory> new"}]},
            {"role": "assistant", "content": "y"},
            {"role": "user", "content": "<system-reminder>\nbe kind\n</system-reminder>"},
            {"role": "assistant", "content": "z"},
        ]))
        .script_message();
        assert_eq!(
            (script_message.text.as_str(), script_message.step),
            ("new", 2)
        );
    }

    #[test]
    fn only_tag_blocks_with_matching_names_are_skipped() {
        assert_eq!(
            without_tag_blocks("a < b <x>1</x> <y>2</z> <1>no</1>"),
            "a < b  <y>2</z> <1>no</1>"
        );
        let script_message =
            request(json!([{"role": "user", "content": "<only>tags</only>"}])).script_message();
        assert_eq!(script_message.text, "<only>tags</only>");
    }
}
