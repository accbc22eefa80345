//! Decodes the lines of an Ollama stream. Pure; never panics for any input.

use serde::Deserialize;
use serde_json::{Value, json};

use super::PROVIDER;
use crate::http::{
    AnswerReader, Chunks, Completion, DecodeError, ProviderError, ThinkSplitter, ToolCallBuilder,
    add_reasoning, count, has_content, lenient,
};
use deerflow_core::messages::UsageMetadata;

/// Maximum number of tool calls in one answer. More are an error of the server.
const MAX_CALLS: u32 = 1024;

/// Line of a stream, or a whole answer.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(default)]
    message: Option<LineMessage>,
    #[serde(default, deserialize_with = "lenient")]
    done: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    done_reason: Option<String>,
    #[serde(default, deserialize_with = "count")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    eval_count: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct LineMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCallFrame>>,
}

#[derive(Debug, Deserialize)]
struct ToolCallFrame {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

/// State of a partly decoded answer.
#[derive(Debug)]
pub(crate) struct ChatReader {
    completion: Completion,
    calls: ToolCallBuilder,
    /// Models may write thoughts into their text even if thinking is off.
    splitter: ThinkSplitter,
    begun: bool,
}

impl ChatReader {
    /// Creates a reader for the message `message_id`. `model` is reported if the server sends no
    /// name.
    pub(super) fn new(message_id: &str, model: &str) -> Self {
        Self {
            completion: Completion::new(message_id, PROVIDER, model),
            calls: ToolCallBuilder::default(),
            splitter: ThinkSplitter::default(),
            begun: false,
        }
    }

    fn line(&mut self, line: Line, out: &mut Chunks) -> Result<(), DecodeError> {
        self.begun |= line.message.is_some();
        self.completion.set_model(line.model);
        let message_body = line.message.unwrap_or_default();
        let mut chunk = self.completion.chunk();
        let parts = self
            .splitter
            .push(&message_body.content.unwrap_or_default());
        chunk.content = parts.answer;
        add_reasoning(
            &mut chunk,
            message_body.thinking.unwrap_or_default() + &parts.thoughts,
        );
        for call in message_body.tool_calls.unwrap_or_default() {
            let function = call.function.unwrap_or_default();
            let args = function
                .arguments
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({}));
            let name = function.name.unwrap_or_default();
            if self
                .calls
                .whole(&call.id.unwrap_or_default(), &name, &args, &mut chunk)
                >= MAX_CALLS
            {
                return Err(DecodeError::TooLong(
                    "the answer has too many tool calls".to_owned(),
                ));
            }
        }
        out.extend(has_content(&chunk).then_some(chunk));
        if line.done != Some(true) {
            return Ok(());
        }
        let input = line.prompt_eval_count.unwrap_or(0);
        self.completion.usage = line.eval_count.map(|output| UsageMetadata {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            ..UsageMetadata::default()
        });
        self.completion.set_reason(line.done_reason);
        self.close(out)
    }

    fn read(&mut self, json: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let value: Value = serde_json::from_slice(json)?;
        match ProviderError::read(&value) {
            Some(provider_error) => Err(DecodeError::ProviderError(provider_error)),
            None => self.line(serde_json::from_value(value)?, out),
        }
    }
}

impl AnswerReader for ChatReader {
    const LINES: bool = true;

    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.read(payload, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.read(body, out)
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.begun {
            return Err(DecodeError::NoChoices);
        }
        let mut trailing = self.completion.chunk();
        let parts = self.splitter.end();
        trailing.content = parts.answer;
        add_reasoning(&mut trailing, parts.thoughts);
        self.completion.close(trailing, "done_reason", "stop", out);
        Ok(())
    }

    fn completion(&self) -> &Completion {
        &self.completion
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
