//! Decodes the events of a chat-completions stream. Pure; never panics for any input.

use serde_json::Value;

use super::calls::{CallTable, TooManyCalls};
use super::dialect::Dialect;
use super::event::{CallDelta, ChatCompletionsEvent, Choice};
use super::reasoning_details::add_fragment;
use super::text_calls::extract_calls;
use crate::http::{
    AnswerReader, Chunks, Completion, DecodeError, ProviderError, ThinkSplitter, add_reasoning,
    has_content,
};
use deerflow_core::messages::MessageChunk;

impl From<TooManyCalls> for DecodeError {
    fn from(_: TooManyCalls) -> Self {
        Self::TooLong("the answer has too many tool calls".to_owned())
    }
}

/// Key of a message's reasoning details in its `additional_kwargs`.
pub(super) const REASONING_DETAILS_KWARG: &str = "reasoning_details";

/// State of a partly decoded answer.
#[derive(Debug)]
pub(crate) struct ChatCompletionsReader {
    completion: Completion,
    calls: CallTable,
    /// Set for models that write their thoughts into the text.
    splitter: Option<ThinkSplitter>,
    /// Set for providers that require the reasoning details back.
    details: Option<Vec<Value>>,
    /// `true` if an answer that is not streamed may contain calls in its text.
    calls_in_text: bool,
    any_choice: bool,
}

impl ChatCompletionsReader {
    /// Creates a reader for the message `message_id`. `model` is reported if the provider sends no
    /// name.
    pub(super) fn new(message_id: &str, dialect: Dialect, model: &str) -> Self {
        Self {
            completion: Completion::new(message_id, dialect.provider, model),
            calls: CallTable::default(),
            splitter: dialect.splits_think_tags.then(ThinkSplitter::default),
            details: dialect.returns_reasoning_details.then(Vec::new),
            calls_in_text: dialect.calls_in_text,
            any_choice: false,
        }
    }
}

impl AnswerReader for ChatCompletionsReader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        if payload == b"[DONE]" {
            self.close(out)
        } else {
            self.read_event(payload, out)
        }
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.read_event(body, out)
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.any_choice {
            return Err(DecodeError::NoChoices);
        }
        let mut trailing = self.completion.chunk();
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.end();
            trailing.content = parts.answer;
            add_reasoning(&mut trailing, parts.thoughts);
        }
        self.calls.close(&mut trailing);
        if let Some(details) = self.details.take().filter(|details| !details.is_empty()) {
            trailing
                .additional_kwargs
                .insert(REASONING_DETAILS_KWARG.to_owned(), Value::Array(details));
        }
        let default_reason = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        self.completion
            .close(trailing, "finish_reason", default_reason, out);
        Ok(())
    }

    fn completion(&self) -> &Completion {
        &self.completion
    }
}

impl ChatCompletionsReader {
    fn read_event(&mut self, json: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let event: ChatCompletionsEvent = serde_json::from_slice(json)?;
        if event.may_be_error()
            && let Some(provider_error) =
                ProviderError::read(&serde_json::from_slice::<Value>(json)?)
        {
            return Err(DecodeError::ProviderError(provider_error));
        }
        self.completion.set_model(event.model);
        if let Some(usage) = event.usage {
            self.completion.usage = Some(usage.into());
        }
        // Only the first choice is the answer; no other one was requested.
        let choices = event.choices.unwrap_or_default();
        if let Some(choice) = choices
            .into_iter()
            .find(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut Chunks) -> Result<(), DecodeError> {
        self.any_choice = true;
        let whole = choice.message.is_some();
        let mut delta = choice.delta.or(choice.message).unwrap_or_default();
        if let (Some(collected), Some(details)) = (&mut self.details, delta.details()) {
            if whole {
                collected.extend_from_slice(details);
            } else {
                details
                    .iter()
                    .for_each(|fragment| add_fragment(collected, fragment));
            }
        }
        let mut chunk = self.completion.chunk();
        chunk.content = delta.text();
        let mut reasoning = delta.reasoning();
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.push(&chunk.content);
            reasoning.push_str(&parts.thoughts);
            chunk.content = parts.answer;
        }
        add_reasoning(&mut chunk, reasoning);
        if whole && self.calls_in_text {
            self.take_text_calls(&mut chunk)?;
        }
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.calls.add(fragment, &mut chunk)?;
        }
        self.completion.set_reason(choice.finish_reason);
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn take_text_calls(&mut self, chunk: &mut MessageChunk) -> Result<(), DecodeError> {
        let (text, calls) = extract_calls(&chunk.content);
        chunk.content = text;
        for call in calls {
            self.calls
                .add(CallDelta::whole(call.name, call.args), chunk)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
