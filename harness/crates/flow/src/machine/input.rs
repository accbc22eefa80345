//! Input of a run.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::output::size_of_value;
use crate::adapter::{ErrorCategory, FlowError};

/// Maximum size of an input, in bytes.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// Input of a run: the prompt of the user, and the values that conditions and loaders read.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    prompt: Arc<str>,
    value: Arc<Value>,
}

impl RunInput {
    /// Reads an input object. `userPrompt` is the prompt; without it, the text of the last human
    /// message in `messages` is.
    ///
    /// # Errors
    /// `input_invalid` if the value is no object, if `userPrompt` is no text, or if the input is
    /// larger than 1 MiB.
    pub fn read(value: Value) -> Result<Self, FlowError> {
        let invalid =
            |message: &str| FlowError::new("input_invalid", ErrorCategory::Validation, message);
        let fields = match &value {
            Value::Object(fields) => fields,
            Value::Null => return Ok(Self::default()),
            _ => return Err(invalid("the input must be an object")),
        };
        if size_of_value(&value) > MAX_INPUT_BYTES {
            return Err(invalid("the input is larger than 1 MiB"));
        }
        let prompt = match fields.get("userPrompt") {
            Some(Value::String(prompt)) => prompt.clone(),
            Some(Value::Null) | None => last_human_text(fields.get("messages")),
            Some(_) => return Err(invalid("input.userPrompt must be text")),
        };
        Ok(Self {
            prompt: prompt.into(),
            value: Arc::new(value),
        })
    }

    /// Creates an input that consists of a prompt.
    pub fn prompt(prompt: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("userPrompt".to_owned(), prompt.into());
        Self {
            prompt: prompt.into(),
            value: Arc::new(Value::Object(fields)),
        }
    }

    /// Returns the same input with another prompt.
    #[must_use]
    pub fn with_prompt(&self, prompt: &str) -> Self {
        let mut fields = self.fields().cloned().unwrap_or_default();
        fields.insert("userPrompt".to_owned(), prompt.into());
        Self {
            prompt: prompt.into(),
            value: Arc::new(Value::Object(fields)),
        }
    }

    /// Returns the prompt; empty if there is none.
    pub fn user_prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the whole input.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the names of the fields.
    pub fn keys(&self) -> Vec<String> {
        self.fields()
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns the input without prompt and messages; `None` if nothing is left.
    pub fn documents(&self) -> Option<Value> {
        let rest: Map<String, Value> = self
            .fields()?
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "userPrompt" | "messages"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        (!rest.is_empty()).then_some(Value::Object(rest))
    }

    fn fields(&self) -> Option<&Map<String, Value>> {
        self.value.as_object()
    }
}

impl Default for RunInput {
    fn default() -> Self {
        Self {
            prompt: "".into(),
            value: Arc::new(Value::Object(Map::new())),
        }
    }
}

fn last_human_text(messages: Option<&Value>) -> String {
    let messages = messages
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let is_human = |message: &&Value| {
        ["role", "type"]
            .iter()
            .any(|key| matches!(message[*key].as_str(), Some("human" | "user")))
    };
    match messages
        .iter()
        .rev()
        .find(is_human)
        .map(|message| &message["content"])
    {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block["text"].as_str().or(block.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
