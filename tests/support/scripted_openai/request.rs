//! What a caller sent, and which step of its script is due.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of a chat-completions call, as far as the scripted model reads it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChatRequest {
    /// The conversation.
    #[serde(default)]
    pub(super) messages: Vec<Value>,
    /// Whether to answer as a stream.
    #[serde(default)]
    pub(super) stream: bool,
    /// The model asked for.
    pub(super) model: Option<String>,
    /// Everything else: tools, stream options, temperature and so on.
    #[serde(flatten)]
    pub(super) parameters: Map<String, Value>,
}

/// One call as it is remembered.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// The user's words that were read as a script.
    pub user: String,
    /// Which turn after that message was asked for, from 0.
    pub step: usize,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Names of the offered tools, sorted.
    pub tools: Vec<String>,
    /// Length of the conversation.
    pub n_messages: usize,
    /// The model asked for.
    pub model: Option<String>,
    /// Roles of the conversation, in order.
    pub roles: Vec<String>,
    /// The conversation as sent.
    pub messages: Vec<Value>,
    /// The rest of the body as sent.
    pub parameters: Map<String, Value>,
    /// The first 12 characters of the Authorization header.
    pub auth: String,
    /// Why strict mode refused it.
    pub rejected: Option<String>,
}

/// The newest words of the user and how far the conversation has come since.
pub(super) struct Cue {
    pub(super) text: String,
    pub(super) step: usize,
}

impl ChatRequest {
    /// Finds the newest user message that is more than `<tag>...</tag>` blocks.
    pub(super) fn cue(&self) -> Cue {
        let mut cue: Option<(usize, String)> = None;
        for (at, message) in self.messages.iter().enumerate().rev() {
            if message["role"] != "user" {
                continue;
            }
            let text = text_of(&message["content"]);
            let bare = without_tag_blocks(&text);
            if !bare.is_empty() {
                cue = Some((at, bare));
                break;
            }
            cue.get_or_insert((at, text));
        }
        let Some((at, text)) = cue else {
            return Cue {
                text: String::new(),
                step: 0,
            };
        };
        let step = self.messages[at..]
            .iter()
            .filter(|message| message["role"] == "assistant")
            .count();
        Cue { text, step }
    }

    /// Names of the tools the model may call.
    pub(super) fn offered_tools(&self) -> BTreeSet<&str> {
        let tools = self.parameters.get("tools").and_then(Value::as_array);
        tools
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    /// Whether the stream should end with a chunk of token counts.
    pub(super) fn wants_usage(&self) -> bool {
        self.parameters
            .get("stream_options")
            .is_some_and(|options| options["include_usage"] == true)
    }

    /// What is remembered of this call.
    pub(super) fn record(
        &self,
        cue: &Cue,
        authorization: &str,
        rejected: Option<String>,
    ) -> RecordedRequest {
        RecordedRequest {
            user: cue.text.clone(),
            step: cue.step,
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

    /// A number that depends on the conversation only: the source of every id in the answer.
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

/// `text` without its `<tag ...>...</tag>` blocks, trimmed.
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
    // The marks that DeerFlow puts around a person's words.
    let framed = bare
        .strip_prefix("--- BEGIN USER INPUT ---")
        .and_then(|text| text.strip_suffix("--- END USER INPUT ---"));
    framed.map_or(bare, str::trim).to_owned()
}

/// The length of the block that `text` starts with.
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
    fn the_newest_user_message_with_words_of_its_own_is_the_cue() {
        let cue = request(json!([
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": [{"type": "text", "text": "<memory a=1>[[hang]]</memory> new"}]},
            {"role": "assistant", "content": "y"},
            {"role": "user", "content": "<system-reminder>\nbe kind\n</system-reminder>"},
            {"role": "assistant", "content": "z"},
        ]))
        .cue();
        assert_eq!((cue.text.as_str(), cue.step), ("new", 2));
    }

    #[test]
    fn only_tag_blocks_of_the_same_name_are_passed_over() {
        assert_eq!(
            without_tag_blocks("a < b <x>1</x> <y>2</z> <1>no</1>"),
            "a < b  <y>2</z> <1>no</1>"
        );
        let cue = request(json!([{"role": "user", "content": "<only>tags</only>"}])).cue();
        assert_eq!(cue.text, "<only>tags</only>");
    }
}
