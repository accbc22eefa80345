//! Reads the lines of an Ollama stream. Pure; never panics, whatever it is given.

use serde::Deserialize;
use serde_json::{Value, json};

use super::PROVIDER;
use crate::messages::UsageMetadata;
use crate::models::http::{
    AnswerReader, CallPieces, Chunks, DecodeError, Ending, Refused, ThinkSplitter, add_reasoning,
    count, lenient, says_something,
};

/// More calls than this in one answer are a fault of the server's.
const MOST_CALLS: u32 = 1024;

/// A line of a stream, or a whole answer.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(default)]
    message: Option<Said>,
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
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
}

#[derive(Debug, Deserialize)]
struct Called {
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

/// What is known of the answer so far.
#[derive(Debug)]
pub(in crate::models) struct Reader {
    ending: Ending,
    calls: CallPieces,
    /// Models that were not asked to think may do so in their text.
    splitter: ThinkSplitter,
    begun: bool,
}

impl Reader {
    /// A reader for the message `message_id`; `model` is the name to report when the server gives none.
    pub(super) fn new(message_id: &str, model: &str) -> Self {
        Self {
            ending: Ending::new(message_id, PROVIDER, model),
            calls: CallPieces::default(),
            splitter: ThinkSplitter::default(),
            begun: false,
        }
    }

    fn line(&mut self, line: Line, out: &mut Chunks) -> Result<(), DecodeError> {
        self.begun |= line.message.is_some();
        self.ending.name_model(line.model);
        let said = line.message.unwrap_or_default();
        let mut chunk = self.ending.chunk();
        let parts = self.splitter.push(&said.content.unwrap_or_default());
        chunk.content = parts.answer;
        add_reasoning(
            &mut chunk,
            said.thinking.unwrap_or_default() + &parts.thoughts,
        );
        for call in said.tool_calls.unwrap_or_default() {
            let function = call.function.unwrap_or_default();
            let args = function
                .arguments
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({}));
            let name = function.name.unwrap_or_default();
            if self
                .calls
                .whole(&call.id.unwrap_or_default(), &name, &args, &mut chunk)
                >= MOST_CALLS
            {
                return Err(DecodeError::TooLong(
                    "the answer has too many tool calls".to_owned(),
                ));
            }
        }
        out.extend(says_something(&chunk).then_some(chunk));
        if line.done != Some(true) {
            return Ok(());
        }
        let input = line.prompt_eval_count.unwrap_or(0);
        self.ending.usage = line.eval_count.map(|output| UsageMetadata {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            ..UsageMetadata::default()
        });
        self.ending.give_reason(line.done_reason);
        self.close(out)
    }

    fn read(&mut self, json: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let value: Value = serde_json::from_slice(json)?;
        match Refused::read(&value) {
            Some(refused) => Err(DecodeError::Refused(refused)),
            None => self.line(serde_json::from_value(value)?, out),
        }
    }
}

impl AnswerReader for Reader {
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
        let mut late = self.ending.chunk();
        let parts = self.splitter.end();
        late.content = parts.answer;
        add_reasoning(&mut late, parts.thoughts);
        self.ending.close(late, "done_reason", "stop", out);
        Ok(())
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
